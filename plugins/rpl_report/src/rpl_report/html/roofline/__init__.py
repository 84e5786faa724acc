"""The roofline as a drawing: axes, roofs, points, and the page's view of them."""
