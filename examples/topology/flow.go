package main

import (
	"slices"
	"strings"
)

// flow is the suffixes of the topics the tape shows, in the order in which a turn passes them.
var flow = []string{
	sessionControl, replyTo, messageInput, enrichedInput, thinkResponses, thinkDLQ, toolUses, toolUseDLQ, toolUseResults,
	toolUseComplete, messageOutput, groupDLQ,
}

// groupDLQ is where the turn processor puts what it cannot take.
const groupDLQ = "streams-dlq"

// flowTopics names the topics the tape shows.
func flowTopics() []string {
	var names []string
	for _, agent := range []string{orchestrator, worker} {
		for _, suffix := range flow {
			names = append(names, topicOf(agent, suffix))
		}
	}
	return names
}

func split(topic string) (agent, suffix string) {
	agent, suffix, _ = strings.Cut(topic, "-")
	return agent, suffix
}

// stage orders topics of a turn; the worker's turn lies inside the orchestrator's.
func stage(topic string) int {
	agent, suffix := split(topic)
	at := slices.Index(flow, suffix)
	switch {
	case agent == worker:
		return len(flow) + at
	case at > slices.Index(flow, toolUses):
		return 2*len(flow) + at
	}
	return at
}
