"""What llama.cpp's converter writes of a config and its loader reads of the file, and the flags that say the same."""
