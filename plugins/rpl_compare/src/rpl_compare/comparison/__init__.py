"""Two recordings, or a history of them, against each other: comparable?, changed?, sure?"""
