package delegation

import (
	"encoding/hex"
	"strings"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/internal/rows/delegationrow"
)

// The domains of digests.
const (
	ofTask     = "delegated task"
	ofSession  = "session of a delegated task"
	ofCallback = "callback of a delegation"
	ofCall     = "call of a delegation"
)

const (
	maxCallbackID  = 128
	callbackPrefix = "callback/" // of the request_id of a message that announces a result
	taskPrefix     = "dlg-"      // of the ID by which replies name a delegation

	delegatedPrefix = "delegated-" // of the sessions of delegated tasks
	peerPrefix      = "peer:"      // of the sessions of the tasks of peers
)

// callbackID returns the ID of the delegation of a call: its tool_use_id, unless another call of the session has it. Some
// providers number the calls of every turn from 0.
func (t *transition) callbackID(toolUseID, callKey string) string {
	if len(toolUseID) > maxCallbackID {
		toolUseID = "call-" + digestOf(ofCall, toolUseID)
	}
	if t.named(toolUseID) == nil {
		return toolUseID
	}
	suffix := digestOf(ofCall, callKey)
	if id := toolUseID + "~" + suffix[:8]; t.named(id) == nil {
		return id
	}
	return toolUseID + "~" + suffix
}

// digest returns 32 hexadecimal digits that identify the delegation of a call. They do not depend on the callback ID: after a long
// outage, a call that is read again may get another one, because the calls before it are forgotten.
func (t *transition) digest(domain, callKey string) string {
	return digestOf(domain, t.key, t.topics.Agent, callKey)
}

// taskID returns the ID by which replies name a delegation. HybridClaw's peers distinguish 32 characters only.
func (t *transition) taskID(x *delegationrow.Task) string {
	return taskPrefix + t.digest(ofTask, x.CallKey)[:28]
}

// requestID is the request_id of the message of the task. The IDs of the records of a delegation begin with it.
func (t *transition) requestID(x *delegationrow.Task) string {
	return "delegation/" + t.digest(ofTask, x.CallKey)
}

// taskSession is the session in which the target runs the task.
func (t *transition) taskSession(x *delegationrow.Task) string {
	return delegatedPrefix + t.digest(ofSession, x.CallKey)
}

// announces reports whether the result of a delegation of the session is announced: in the place that its call came from, or in the
// session itself.
func (t *transition) announces(origin []byte) bool {
	ofTask := strings.HasPrefix(t.key, delegatedPrefix) || strings.HasPrefix(t.key, peerPrefix)
	return len(origin) > 0 || t.config.Sessions && !ofTask
}

// callbackRequest is the request_id of the message that announces the result of the delegation of a call.
func (t *transition) callbackRequest(callKey string) string {
	return callbackPrefix + t.digest(ofCallback, callKey)
}

// callbackMessage is the ID of the record of that message.
func callbackMessage(request string) string { return request + "/message" }

// depthOf returns how many delegations led to a call. A turn without turn.Config.Channels does not say it. With Config.Sessions its
// announcements could then delegate indefinitely, so a call of a turn that announces a result is recognised by the ID of the turn.
func (t *transition) depthOf(e called) int64 {
	depth := max(e.Call.Depth, 0)
	if depth > 0 || !t.config.Sessions || len(e.Call.Origin) > 0 {
		return depth
	}
	turn, _, _ := strings.Cut(e.ID, "/")
	announced := t.first(func(x *delegationrow.Task) bool {
		return turn == digests.Turn(t.key, callbackMessage(t.callbackRequest(x.CallKey)))
	})
	return announced.GetDepth()
}

func digestOf(domain string, parts ...string) string {
	d := digests.Of(domain, parts...)
	return hex.EncodeToString(d[:])
}
