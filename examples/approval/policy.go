package main

import (
	"time"

	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/topics"
)

// policy lets the agent read, asks before it pays, and never lets it pay more than 1000.00, whatever a person says. In
// production, read it from a file with package policyfile.
func policy() approval.Policy {
	limit := 100_000.01
	return approval.Policy{
		ReadOnly: []string{"ledger"},
		TTL:      time.Hour,
		Rules: []approval.Rule{
			{
				Tool: "pay", Effect: approval.Ask, Edit: true, Message: "May the agent pay this?",
				Schema: topics.Raw(`{"type":"object","required":["to","cents"],"properties":{` +
					`"to":{"type":"string"},"cents":{"type":"integer","minimum":1,"maximum":100000}}}`),
			},
			{
				Tool: "pay", Effect: approval.Deny, Args: map[string]approval.Condition{"/cents": {AtLeast: &limit}},
				Message: "payments over 1000.00 are made by the bank",
			},
			// No one answers for this receiver, so that the example need not wait for an hour.
			{
				Tool: "pay", Effect: approval.Ask, TTL: 2 * time.Second,
				Args:    map[string]approval.Condition{"/to": {Equals: topics.Raw(`"noor"`)}},
				Message: "May the agent pay this? (2 seconds)",
			},
		},
	}
}
