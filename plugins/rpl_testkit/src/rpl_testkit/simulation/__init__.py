"""An oracle for who waits for whom: host programs played on simulated streams, queues and events.

It imports nothing of the analysis. ``runtime`` plays a program and keeps what really blocked what;
``figures`` tells from that what an analysis must say, and from the calls alone what they prove.
"""
