"""The words and values of the program: numpy and the standard library only."""
