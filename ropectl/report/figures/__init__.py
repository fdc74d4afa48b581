"""Figures of records. matplotlib is imported when one is drawn, never before; torch never."""
