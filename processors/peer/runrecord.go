package peer

import (
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/internal/rows/peerrow"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// auditRun writes a record of the audit. Its topic has the records of all sessions under one key, so its ID has the whole
// identity of the task. An instance that has lost its ID since the door accepted the task has no audit.
func (t *transition) auditRun(run *peerrow.Run, step string, record topics.PeerAudit) {
	if record.InstanceID = run.InstanceId; record.InstanceID != "" {
		machine.Emit(&t.Effects, t.events, record.InstanceID, peerwire.TaskKey(run.InboundId, run.TaskId)+"/"+run.RunId+"/"+step, record)
	}
}

// messageOf returns the message that begins the run's turn.
func messageOf(r *peerrow.Run, session string, req peerwire.Request, at time.Time) topics.Message {
	type origin struct {
		TaskID           string `json:"task_id"`
		InboundID        string `json:"inbound_id"`
		ParentInstanceID string `json:"parent_instance_id"`
	}
	metadata := object(struct {
		RequestID string `json:"request_id"`
		Peer      origin `json:"peer"`
		Model     string `json:"model,omitzero"`
	}{r.RunId, origin{r.TaskId, r.InboundId, r.ParentInstanceId}, r.Model})
	content, _ := jsontext.AppendQuote(nil, req.Content) // invalid UTF-8 is replaced
	user, role, timestamp := "peer:"+r.InboundId, "user", topics.Timestamp(at)
	return topics.Message{
		SessionID: &session, UserID: &user, Role: &role, Content: content, Timestamp: &timestamp, Metadata: metadata,
	}
}

// callbackOf returns the record that delivers the reply to a service.
func callbackOf(r *peerrow.Run, session string, body topics.Raw, at time.Time) topics.Output {
	return topics.Output{
		SessionID: &session, Content: string(body), SourceAgent: r.Agent, RequestID: &r.RunId, Timestamp: topics.Timestamp(at),
		ReplyTo: object(struct {
			Service   string `json:"callbackService"`
			Token     string `json:"bearerToken"`
			RequestID string `json:"request_id"`
		}{r.CallbackService, r.CallbackToken, r.RunId}),
	}
}

// object writes a struct of texts, which cannot fail.
func object(v any) topics.Raw {
	raw, err := json.Marshal(v, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		panic("peer: write an object: " + err.Error())
	}
	return raw
}
