"""What several views share: tables by length, heat maps, the runtime matrix, and how numbers and names are written."""
