"""Parts that several views share: tables by length, heat maps, the runtime matrix, and the spelling of numbers and names."""
