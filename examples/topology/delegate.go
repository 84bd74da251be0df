package main

import (
	"context"
	"errors"
	"strings"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn/tools"
	"github.com/turntable-streams/turntable/topics"
)

// A delegated task is a tool call that another agent answers later:
//
//	orchestrator-tool-use (delegate_task) -> newDelegate -> worker-reply-to, worker-message-input
//	worker-message-output -> worker-deliveries -> POST /api/tools/response of the orchestrator -> orchestrator-tool-use-result
const delegateTask = "delegate_task"

type task struct {
	Task string `json:"task" jsonschema:"what the worker must do"`
}

// subSession separates the session of a call from its ID in the name of the task's session.
const subSession = "--"

var errNoTask = errors.New("the input has no task")

// newDelegate returns the tool that gives a task to the agent with the topics of to. The result is left to the callback: the
// reply route of the task names the service to call back, and has the token that answers this call and no other.
//
// If the process is killed meanwhile, the tool is called again with the same call. It then writes the same request again, which
// the other agent answers once.
func newDelegate(publisher processors.Publisher, to topics.Catalog) tools.Tool {
	return tools.New(delegateTask, "Gives a task to the worker.", func(ctx context.Context, in task) (any, error) {
		if strings.TrimSpace(in.Task) == "" {
			return nil, errNoTask
		}
		call := tools.CallOf(ctx)
		token, err := call.Token()
		if err != nil {
			return nil, err
		}
		session := call.SessionID + subSession + call.ToolUseID
		back := topics.Route{Raw: encode(map[string]string{
			"callbackService": orchestrator, "bearerToken": token, "request_id": call.ToolUseID,
		})}
		route, err := processors.OutboundOf(to.ReplyTo, session, back, call.Key()+"/route")
		if err != nil {
			return nil, err
		}
		message, err := processors.OutboundOf(to.MessageInput, session, question(session, nil, call.ToolUseID, in.Task), call.Key()+"/task")
		if err != nil {
			return nil, err
		}
		// Topics have no common order: the message says which route it has, also if it is read first.
		message.Headers[topics.HeaderRoute] = topics.WithoutToken(back.Raw, topics.RouteID(session, call.Key()+"/route"))
		if err := publisher.Publish(ctx, route, message); err != nil {
			return nil, err
		}
		return tools.Pending{}, nil
	})
}
