"""What the rows say, in numbers and sentences, a module per question. Draws nothing."""
