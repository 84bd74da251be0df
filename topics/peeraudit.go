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
	Version int64
	Event   PeerEvent
	// TaskID is the ID of the task as the dispatcher chose it. It is empty only for a PeerRefused whose body was not read.
	TaskID string
	// InstanceID is the instance that wrote the record, and Seq the record's number in its chain, from 1.
	InstanceID string
	Seq        int64
	// AtMS is the time of the event in Unix milliseconds.
	AtMS int64
	// SessionID is the session of the writer that the task belongs to, and RunID the writer's name of the attempt or the run.
	SessionID string
	RunID     string
	// ParentRunID, ParentSessionID and ParentInstanceID are what the dispatcher says about the origin of the task.
	ParentRunID      string
	ParentSessionID  string
	ParentInstanceID string
	// PeerID is the dispatcher's label of the receiver, and InboundID the receiver's label of the dispatcher's token.
	// One of them is empty, and both are in a PeerRefused without a known token.
	PeerID    string
	InboundID string
	// PeerInstanceID and PeerRunID are those of the reply: in a PeerAcknowledged only.
	PeerInstanceID string
	PeerRunID      string
	// AgentID and Model are those that were asked for, or that ran; empty for a default.
	AgentID string
	Model   string
	// ContentLength and ResultLength are in UTF-16 code units, as JavaScript counts them.
	ContentLength int64
	// Status is the status of the reply: in a PeerAcknowledged and a PeerCompleted only.
	Status       string
	ResultLength int64
	// ToolsUsed are the names of the tools that the run used.
	ToolsUsed []string
	// PendingApproval says that the run stopped because a person's approval was needed.
	PendingApproval bool
	// Code is the reason of a PeerSendFailed, a PeerFailed or a PeerRefused, and HTTPStatus the status of the response, 0
	// if there was none.
	Code       string
	HTTPStatus int64
	// PrevHash is the Hash of the record before it in the chain, empty for the first one. Hash is PeerAuditHash of the record.
	PrevHash string
	Hash     string
}

var (
	peerAuditWire = wire[PeerAudit]{depth: MaxDepth, read: readValidPeerAudit, write: writePeerAudit}
	// peerEventWire is that of {agent}-peer-events, whose records have no place in a chain yet.
	peerEventWire = wire[PeerAudit]{depth: MaxDepth, read: readPeerAudit, write: writePeerAudit}
)

// PeerAuditHash returns the SHA-256 of the record's JSON without the member hash, in hexadecimal. The member is the last one
// of the JSON that this package writes, so a program in another language can check a record by removing it.
func PeerAuditHash(r PeerAudit) string {
	r.Hash = ""
	sum := sha256.Sum256(encode(r, writePeerAudit))
	return hex.EncodeToString(sum[:])
}

// readValidPeerAudit rejects a record that has no place in a chain.
func readValidPeerAudit(c *cursor, r *PeerAudit) error {
	if err := readPeerAudit(c, r); err != nil {
		return err
	}
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

func readPeerAudit(c *cursor, r *PeerAudit) error {
	return c.record(func(name []byte) (err error) {
		switch string(name) {
		case "version":
			r.Version, err = c.integer(64)
		case "event":
			r.Event, err = readWord[PeerEvent](c)
		case "task_id":
			r.TaskID, err = c.word()
		case "instance_id":
			r.InstanceID, err = c.word()
		case "seq":
			r.Seq, err = c.integer(64)
		case "at_ms":
			r.AtMS, err = c.integer(64)
		case "content_length":
			r.ContentLength, err = c.integer(64)
		case "result_length":
			r.ResultLength, err = c.integer(64)
		case "tools_used":
			r.ToolsUsed, err = c.words()
		case "pending_approval":
			r.PendingApproval, err = c.boolean()
		case "http_status":
			r.HTTPStatus, err = c.integer(64)
		case "prev_hash":
			r.PrevHash, err = c.word()
		case "hash":
			r.Hash, err = c.word()
		default:
			if text := r.text(name); text != nil {
				*text, err = c.word()
			} else {
				err = c.skip()
			}
		}
		return err
	})
}

// text returns the optional text with the given name, or nil if there is none.
func (r *PeerAudit) text(name []byte) *string {
	switch string(name) {
	case "session_id":
		return &r.SessionID
	case "run_id":
		return &r.RunID
	case "parent_run_id":
		return &r.ParentRunID
	case "parent_session_id":
		return &r.ParentSessionID
	case "parent_instance_id":
		return &r.ParentInstanceID
	case "peer_id":
		return &r.PeerID
	case "inbound_id":
		return &r.InboundID
	case "peer_instance_id":
		return &r.PeerInstanceID
	case "peer_run_id":
		return &r.PeerRunID
	case "agent_id":
		return &r.AgentID
	case "model":
		return &r.Model
	case "status":
		return &r.Status
	case "code":
		return &r.Code
	default:
		return nil
	}
}

// words reads an array of texts; nil for null and an empty array.
func (c *cursor) words() (words []string, err error) {
	_, err = c.array(func() error {
		w, err := c.word()
		words = append(words, w)
		return err
	}, nil)
	return words, err
}

func writePeerAudit(w *writer, r PeerAudit) {
	w.open()
	w.integer("version", r.Version)
	w.word("event", string(r.Event))
	w.some("task_id", r.TaskID)
	w.word("instance_id", r.InstanceID)
	w.integer("seq", r.Seq)
	w.integer("at_ms", r.AtMS)
	w.some("session_id", r.SessionID)
	w.some("run_id", r.RunID)
	w.some("parent_run_id", r.ParentRunID)
	w.some("parent_session_id", r.ParentSessionID)
	w.some("parent_instance_id", r.ParentInstanceID)
	w.some("peer_id", r.PeerID)
	w.some("inbound_id", r.InboundID)
	w.some("peer_instance_id", r.PeerInstanceID)
	w.some("peer_run_id", r.PeerRunID)
	w.some("agent_id", r.AgentID)
	w.some("model", r.Model)
	w.integer("content_length", r.ContentLength)
	w.some("status", r.Status)
	w.integer("result_length", r.ResultLength)
	if len(r.ToolsUsed) > 0 {
		writeList(w, "tools_used", r.ToolsUsed, func(w *writer, tool string) {
			w.next()
			w.b = appendText(w.b, tool)
		})
	}
	w.boolean("pending_approval", r.PendingApproval)
	w.some("code", r.Code)
	w.integer("http_status", r.HTTPStatus)
	w.some("prev_hash", r.PrevHash)
	w.some("hash", r.Hash)
	w.close()
}
