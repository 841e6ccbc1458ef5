"""The words of SVG and the scales that reports and plans draw with; no drawing library is needed."""
