package topics

import (
	"crypto/sha256"
	"encoding/hex"
)

// PeerEvent says what a PeerAudit records. Readers keep events that they do not know.
type PeerEvent string

// The events of a delegation between two instances. The dispatcher writes PeerSent, then PeerAcknowledged or PeerSendFailed.
// The receiver writes PeerReceived, then PeerCompleted or PeerFailed; or PeerRefused alone.
const (
	// PeerSent: the dispatcher is about to send a task.
	PeerSent PeerEvent = "peer.delegate.sent"
	// PeerAcknowledged: the peer returned a well-formed reply, of any status.
	PeerAcknowledged PeerEvent = "peer.delegate.acknowledged"
	// PeerSendFailed: the dispatcher gave the task up without a reply.
	PeerSendFailed PeerEvent = "peer.delegate.send_failed"
	// PeerReceived: the receiver accepted a task.
	PeerReceived PeerEvent = "peer.delegate.received"
	// PeerCompleted: the run ended, with any status.
	PeerCompleted PeerEvent = "peer.delegate.completed"
	// PeerFailed: the run ended without a result of its own, because of a failure of the receiver.
	PeerFailed PeerEvent = "peer.delegate.failed"
	// PeerRefused: the receiver did not accept a request.
	PeerRefused PeerEvent = "peer.delegate.refused"
)

// PeerAuditVersion is the Version of the records that this package writes.
const PeerAuditVersion = 1

// PeerAudit is the value of {agent}-peer-audit: one event of a delegation, as one instance saw it. It has lengths of
// contents and results, never the texts. The records of an instance form a hash chain: see processors/peer.
type PeerAudit struct {
	// Version is PeerAuditVersion. Records of another version may have members that this package does not read.
	Version int64     `json:"version"`
	Event   PeerEvent `json:"event"`
	// TaskID is the ID of the task as the dispatcher chose it. It is empty only for a PeerRefused whose body was not read.
	TaskID string `json:"task_id,omitzero"`
	// InstanceID is the instance that wrote the record, and Seq the record's number in its chain, from 1.
	InstanceID string `json:"instance_id"`
	Seq        int64  `json:"seq"`
	// AtMS is the time of the event in Unix milliseconds.
	AtMS int64 `json:"at_ms"`
	// SessionID is the session of the writer that the task belongs to, and RunID the writer's name of the attempt or the run.
	SessionID string `json:"session_id,omitzero"`
	RunID     string `json:"run_id,omitzero"`
	// ParentRunID, ParentSessionID and ParentInstanceID are what the dispatcher says about the origin of the task.
	ParentRunID      string `json:"parent_run_id,omitzero"`
	ParentSessionID  string `json:"parent_session_id,omitzero"`
	ParentInstanceID string `json:"parent_instance_id,omitzero"`
	// PeerID is the dispatcher's label of the receiver, and InboundID the receiver's label of the dispatcher's token.
	// One of them is empty, and both are in a PeerRefused without a known token.
	PeerID    string `json:"peer_id,omitzero"`
	InboundID string `json:"inbound_id,omitzero"`
	// PeerInstanceID and PeerRunID are those of the reply: in a PeerAcknowledged only.
	PeerInstanceID string `json:"peer_instance_id,omitzero"`
	PeerRunID      string `json:"peer_run_id,omitzero"`
	// AgentID and Model are those that were asked for, or that ran; empty for a default.
	AgentID string `json:"agent_id,omitzero"`
	Model   string `json:"model,omitzero"`
	// ContentLength and ResultLength are in UTF-16 code units, as JavaScript counts them.
	ContentLength int64 `json:"content_length"`
	// Status is the status of the reply: in a PeerAcknowledged and a PeerCompleted only.
	Status       string `json:"status,omitzero"`
	ResultLength int64  `json:"result_length"`
	// ToolsUsed are the names of the tools that the run used.
	ToolsUsed []string `json:"tools_used,omitempty"`
	// PendingApproval says that the run stopped because a person's approval was needed.
	PendingApproval bool `json:"pending_approval"`
	// Code is the reason of a PeerSendFailed, a PeerFailed or a PeerRefused, and HTTPStatus the status of the response, 0
	// if there was none.
	Code       string `json:"code,omitzero"`
	HTTPStatus int64  `json:"http_status"`
	// PrevHash is the Hash of the record before it in the chain, empty for the first one. Hash is PeerAuditHash of the record.
	PrevHash string `json:"prev_hash,omitzero"`
	Hash     string `json:"hash,omitzero"`
}

var (
	peerAuditWire = tagged(checkPeerAudit)
	// peerEventWire is that of {agent}-peer-events, whose records have no place in a chain yet.
	peerEventWire = tagged[PeerAudit](nil)
)

// PeerAuditHash returns the SHA-256 of the record's JSON without the member hash, in hexadecimal. The member is the last one
// of the JSON that this package writes, so a program in another language can check a record by removing it.
func PeerAuditHash(r PeerAudit) string {
	r.Hash = ""
	sum := sha256.Sum256(encode(r, peerEventWire.write))
	return hex.EncodeToString(sum[:])
}

// checkPeerAudit rejects a record that has no place in a chain.
func checkPeerAudit(r *PeerAudit) error {
	switch {
	case r.Event == "":
		return missing("event")
	case r.TaskID == "" && r.Event != PeerRefused:
		return missing("task_id")
	case r.InstanceID == "":
		return missing("instance_id")
	case r.Seq < 1:
		return wrongType("seq", "less than 1")
	case r.Hash == "":
		return missing("hash")
	}
	return nil
}
