"""An oracle for who waits for whom: host programs played on simulated streams, queues and events.

It imports nothing of the analysis. ``runtime`` plays a program and keeps what really blocked what; ``proofs``
tells from the recorded calls alone what they prove.
"""
