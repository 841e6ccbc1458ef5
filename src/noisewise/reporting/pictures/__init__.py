"""The report's pictures: SVG written by hand, coloured by the page's style sheet, without any drawing library."""
