// Package audit makes the records of a peer delegation: what was sent, received, answered and refused.
package audit

import (
	"time"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/topics"
)

// Sent returns the record of a request that is about to be sent to the peer with a label. session is the session that
// delegates, and run is the dispatcher's name of the attempt. Head.Append gives the record its place in the chain.
func Sent(req peerwire.Request, peerID, session, run string, at time.Time) topics.PeerAudit {
	r := requested(topics.PeerSent, req, at)
	r.PeerID, r.SessionID, r.RunID, r.ParentRunID = peerID, session, run, req.ParentRunID
	return r
}

// Acknowledged returns the record of a reply, for the record of Sent.
func Acknowledged(sent topics.PeerAudit, reply peerwire.Reply, at time.Time) topics.PeerAudit {
	reply = reply.Settled()
	r := outcome(topics.PeerAcknowledged, sent, at)
	r.PeerInstanceID, r.PeerRunID = reply.PeerInstanceID, reply.PeerRunID
	r.Status, r.ResultLength = string(reply.Status), int64(peerwire.Length(reply.Result))
	return r
}

// SendFailed returns the record of a request that was given up, for the record of Sent. status is that of the last response, 0
// if there was none.
func SendFailed(sent topics.PeerAudit, code peerwire.Code, status int, at time.Time) topics.PeerAudit {
	r := outcome(topics.PeerSendFailed, sent, at)
	r.Code, r.HTTPStatus = string(code), int64(status)
	return r
}

// Received returns the record of a task that was accepted under the label of a token, for the agent that will run it. session
// and run are those of the receiver.
func Received(req peerwire.Request, inboundID, agentID, session, run string, at time.Time) topics.PeerAudit {
	r := requested(topics.PeerReceived, req, at)
	r.InboundID, r.AgentID, r.SessionID, r.RunID = inboundID, agentID, session, run
	r.ParentRunID, r.ParentSessionID, r.ParentInstanceID = req.ParentRunID, req.ParentSessionID, req.ParentInstanceID
	return r
}

// Completed returns the record of the reply to a task, for the record of Received. The record of a reply that was thrown is a
// peer.delegate.failed.
func Completed(received topics.PeerAudit, reply peerwire.Reply, at time.Time) topics.PeerAudit {
	if reply.Thrown {
		r := outcome(topics.PeerFailed, received, at)
		r.Code = string(peerwire.CodeInternal)
		return r
	}
	pending := reply.PendingApprovalSummary != ""
	reply = reply.Settled()
	r := outcome(topics.PeerCompleted, received, at)
	r.Status, r.ResultLength = string(reply.Status), int64(peerwire.Length(reply.Result))
	r.ToolsUsed, r.PendingApproval = reply.ToolsUsed, pending
	return r
}

// Refused returns the record of a request that was refused. inboundID is empty if the token was not accepted, and req is the
// zero value if the body was not read.
func Refused(req peerwire.Request, inboundID string, refusal *peerwire.Refusal, at time.Time) topics.PeerAudit {
	r := requested(topics.PeerRefused, req, at)
	r.InboundID, r.Code, r.HTTPStatus = inboundID, string(refusal.Code), int64(refusal.Status)
	r.ParentRunID, r.ParentSessionID, r.ParentInstanceID = req.ParentRunID, req.ParentSessionID, req.ParentInstanceID
	return r
}

// requested has what the records of a request have in common.
func requested(event topics.PeerEvent, req peerwire.Request, at time.Time) topics.PeerAudit {
	return topics.PeerAudit{
		Event: event, TaskID: req.TaskID, AtMS: at.UnixMilli(), AgentID: req.AgentID, Model: req.Model,
		ContentLength: int64(peerwire.Length(req.Content)),
	}
}

// outcome has what the records of the end of a task have in common with that of its beginning.
func outcome(event topics.PeerEvent, begin topics.PeerAudit, at time.Time) topics.PeerAudit {
	return topics.PeerAudit{
		Event: event, TaskID: begin.TaskID, AtMS: at.UnixMilli(), SessionID: begin.SessionID, RunID: begin.RunID,
		PeerID: begin.PeerID, InboundID: begin.InboundID,
	}
}
