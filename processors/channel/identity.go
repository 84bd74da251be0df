package channel

import (
	"encoding/hex"

	"github.com/turntable-streams/turntable/internal/digests"
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
	peerTaskPrefix = "dlg-"      // of the task ID of a task for a peer
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

// digest returns 32 hexadecimal digits that identify the delegation of a call. A callback ID that is used again after the
// delegation was forgotten belongs to another call, and so to another task.
func (t *transition) digest(domain, callbackID, callKey string) string {
	return digestOf(domain, t.key, t.rules.Agent, callbackID, callKey)
}

// taskID returns the ID by which replies name a delegation.
func (t *transition) taskID(x *Task) string {
	d := t.digest(ofTask, x.CallbackId, x.CallKey)
	if x.toPeer() {
		return peerTaskPrefix + d[:28] // HybridClaw distinguishes 32 characters only
	}
	return x.CallbackId + "/" + d[:16]
}

// requestID is the request_id of the message of the task. The IDs of the records of a delegation begin with it.
func (t *transition) requestID(x *Task) string {
	return "delegation/" + t.digest(ofTask, x.CallbackId, x.CallKey)
}

// taskSession is the session in which the target runs the task.
func (t *transition) taskSession(x *Task) string {
	return "delegated-" + t.digest(ofSession, x.CallbackId, x.CallKey)
}

// callbackRequest is the request_id of the message that announces a result.
func (t *transition) callbackRequest(c *Callback) string {
	return callbackPrefix + t.digest(ofCallback, c.CallbackId, c.CallKey)
}

func digestOf(domain string, parts ...string) string {
	d := digests.Of(domain, parts...)
	return hex.EncodeToString(d[:])
}
