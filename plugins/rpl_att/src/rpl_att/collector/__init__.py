"""Recording a thread trace with rocprofv3 --att: plan, run, aim again once, say what went wrong."""
