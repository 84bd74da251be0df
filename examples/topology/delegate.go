package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A delegated task is a tool call that another agent answers:
//
//	orchestrator-tool-use (delegate_task) -> dispatch -> worker-reply-to, worker-message-input
//	worker-message-output                 -> deliver  -> orchestrator-tool-use-result
//
// The task has a session of its own, {session}--{tool_use_id}, and the call's id as its request id: a task that is
// dispatched again after a crash is the same request, which the worker's turn processor answers once.

const subSession = "--"

// dispatch hands the delegate_task calls of one agent to another.
func dispatch(from, to string, now func() time.Time) role {
	return role{
		group: topicOf(from, "dispatcher"),
		topic: topicOf(from, toolUses),
		dlq:   topicOf(from, toolUseDLQ),
		answer: func(r *kgo.Record) ([]*kgo.Record, error) {
			var use toolUse
			if err := json.Unmarshal(r.Value, &use); err != nil || use.Name != delegateTask {
				return nil, nil // the tool worker's
			}
			var in taskInput
			if err := json.Unmarshal(use.Input, &in); err != nil || strings.TrimSpace(in.Task) == "" {
				return nil, fmt.Errorf("%s: input has no task", delegateTask)
			}
			session := string(r.Key) + subSession + use.ToolUseID
			back := route{
				CallbackService: from, RequestID: use.ToolUseID,
				SessionID: string(r.Key), ToolUseID: use.ToolUseID, Name: use.Name,
			}
			task := message{
				SessionID: &session, Role: "user", Content: text(in.Task), Timestamp: stamp(now()),
				Metadata: encode(metadata{RequestID: use.ToolUseID}),
			}
			return []*kgo.Record{
				{Topic: topicOf(to, replyTo), Key: []byte(session), Value: encode(back)},
				{Topic: topicOf(to, messageInput), Key: []byte(session), Value: encode(task)},
			}, nil
		},
	}
}

// deliver turns the outputs of one agent that carry a route of this program into tool results of the agent that
// delegated the task. It keeps no state: a result that is delivered twice is used once.
func deliver(from string, now func() time.Time) role {
	return role{
		group: topicOf(from, "sink"),
		topic: topicOf(from, messageOutput),
		answer: func(r *kgo.Record) ([]*kgo.Record, error) {
			var out output
			if err := json.Unmarshal(r.Value, &out); err != nil {
				return nil, fmt.Errorf("not an output: %w", err)
			}
			var back route
			if json.Unmarshal(out.ReplyTo, &back) != nil || back.ToolUseID == "" {
				return nil, nil // the message did not come from dispatch
			}
			result, status := encode(delegated{Answer: out.Content}), statusSuccess
			if out.Error != nil {
				result, status = encode(failure{Error: out.Error.Message, Reason: out.Error.Code}), statusError
			}
			use := toolUse{ToolUseID: back.ToolUseID, Name: back.Name, SessionID: back.SessionID, TotalTools: 1}
			at := now()
			return []*kgo.Record{resultOf(back.CallbackService, use, result, status, r.Timestamp, at)}, nil
		},
	}
}
