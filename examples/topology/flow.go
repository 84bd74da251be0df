package main

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/twmb/franz-go/pkg/kgo"
)

// flow is the suffixes of the topics the recorder shows, in the order in which a turn passes them.
var flow = []string{
	sessionControl, replyTo, messageInput, memoirLookups, enrichedInput, thinkResponses, thinkDLQ,
	gateRequests, gateDecisions, gateOutcomes, toolUses, toolUseDLQ, toolUseResults,
	toolUseComplete, messageOutput, sessionEnd, memoirSessions, memoirSnapshots, memoirContext, memoirDLQ, groupDLQ,
}

// groupDLQ is the dead-letter topic of the turn processor.
const groupDLQ = "streams-dlq"

// gateTopics are the suffixes that exist only for the orchestrator, with -approve.
var gateTopics = []string{gateRequests, gateDecisions, gateOutcomes}

// memoryTopics are the suffixes that exist only for the orchestrator, with -memory.
var memoryTopics = []string{memoirLookups, sessionEnd, memoirSessions, memoirSnapshots, memoirContext, memoirDLQ}

// flowTopics names the topics the recorder shows.
func (s settings) flowTopics() []string {
	var names []string
	for _, agent := range []string{orchestrator, worker} {
		for _, suffix := range flow {
			if slices.Contains(gateTopics, suffix) && (agent == worker || !s.approve) ||
				slices.Contains(memoryTopics, suffix) && (agent == worker || !s.memory) {
				continue
			}
			names = append(names, topicOf(agent, suffix))
		}
	}
	return names
}

func split(topic string) (agent, suffix string) {
	agent, suffix, _ = strings.Cut(topic, "-")
	return agent, suffix
}

// stage returns the position of a record in the turn, which orders records of one millisecond. The worker's turn is
// inside the orchestrator's, between a tool call and its result.
func stage(r *kgo.Record) int {
	agent, suffix := split(r.Topic)
	at := slices.Index(flow, suffix)
	answered := at > slices.Index(flow, toolUses)
	if !answered && toolStep(suffix, r.Value) {
		at, answered = at+len(flow), true
	}
	if suffix == messageOutput {
		at += len(flow)
	}
	switch {
	case agent == worker:
		return 2*len(flow) + at
	case answered:
		return 4*len(flow) + at
	}
	return at
}

// toolStep reports whether a record carries the tools' results to the model, or is its response to them.
func toolStep(suffix string, value jsontext.Value) bool {
	role := func(m jsontext.Value) bool { return field[message](m).Role == "tool" }
	switch suffix {
	case messageInput:
		return role(value)
	case memoirLookups, enrichedInput:
		return role(field[enrichedMessage](value).LatestInput)
	case thinkResponses:
		return role(field[thinkResponse](value).LastInputMessage)
	}
	return false
}
