package channel

import (
	"context"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/topics"
)

// via names the bridge in decisions.
const via = "channel"

const (
	maxReason = 4 << 10
	maxPrompt = 16 << 10
)

// event is an event that is not refused.
type event struct {
	id       string // the turntable.id of its records begins with it
	in       adapter.Inbound
	out      outcome
	settings *Settings
	catalog  topics.Catalog // of the agent
	now      time.Time
}

func (e event) session() string { return e.out.Origin.Session(e.out.Agent) }

// records returns the records of an event. They have the same IDs whenever it is received.
func (b *Bridge) records(ctx context.Context, e event) ([]processors.Outbound, error) {
	switch e.out.Action {
	case Ask:
		return one(e.message())
	case Press:
		d := e.in.Decision
		return e.decision(d.GateID, verdictOf(d.Approve), "", true)
	case Slow:
		return one(e.reply(tooFast))
	case TooLong:
		return one(e.reply(tooLong))
	}
	c := e.out.Command
	switch c.Name {
	case commandApprove, commandDeny:
		return e.decision(c.Code, verdictOf(c.Name == commandApprove), c.Rest, false)
	case commandStop:
		return e.commands(stopping, e.cancel)
	case commandNew:
		text := forgotten
		if c.Rest != "" {
			text += " " + restUnread
		}
		return e.commands(text, e.cancel, e.forget)
	case commandAgents:
		return one(e.reply(agentsText(e.settings, e.out.Agent)))
	default:
		return one(e.reply(b.statusText(ctx, e)))
	}
}

func one(out processors.Outbound, err error) ([]processors.Outbound, error) {
	return []processors.Outbound{out}, err
}

// commands returns the records of a command, and then the reply.
func (e event) commands(reply string, records ...func() (processors.Outbound, error)) (list []processors.Outbound, err error) {
	for _, record := range append(records, func() (processors.Outbound, error) { return e.reply(reply) }) {
		out, err := record()
		if err != nil {
			return nil, err
		}
		list = append(list, out)
	}
	return list, nil
}

// message is the message to the agent.
func (e event) message() (processors.Outbound, error) {
	session, role, at := e.session(), "user", topics.Timestamp(e.at())
	m := topics.Message{
		SessionID: &session, Role: &role, Timestamp: &at, Content: quote(framed(e.out.Origin, e.in.Text)),
		Metadata: e.metadata(),
	}
	if user := e.out.Origin.UserID(); user != "" {
		m.UserID = &user
	}
	return processors.OutboundOf(e.catalog.MessageInput, session, m, e.id+"/message")
}

// at is when the person wrote, or the event was received.
func (e event) at() time.Time {
	if e.in.At.IsZero() {
		return e.now
	}
	return e.in.At
}

// metadata has the origin, to which the answer goes, and the account's prompt as it is now.
func (e event) metadata() topics.Raw {
	b := topics.Raw(`{"request_id":`)
	b = append(b, quote(e.id)...)
	b = append(append(append(b, ',', '"'), topics.MetaOrigin...), '"', ':')
	b = append(b, topics.EncodeOrigin(e.out.Origin)...)
	if prompt := e.out.Account.Prompt; prompt != "" {
		b = append(append(append(b, ',', '"'), topics.MetaPrompt...), '"', ':')
		b = append(b, quote(truncate.Text(prompt, maxPrompt))...)
	}
	return append(b, '}')
}

// reply is a text to the person, which is delivered like an answer.
func (e event) reply(text string) (processors.Outbound, error) {
	session := e.session()
	return processors.OutboundOf(e.catalog.ChannelMessages, session, topics.Output{
		SessionID: &session, Content: text, SourceAgent: e.out.Agent, Timestamp: topics.Timestamp(e.now), RequestID: &e.id,
		ReplyTo: topics.OriginRoute(topics.EncodeOrigin(e.out.Origin), nil),
	}, e.id+"/reply")
}

// cancel ends the open turn.
func (e event) cancel() (processors.Outbound, error) {
	reason := "the user stopped it"
	return processors.OutboundOf(e.catalog.SessionControl, e.session(),
		topics.Control{Action: topics.ActionCancel, Reason: &reason}, e.id+"/cancel")
}

// forget is the tombstone that clears the conversation.
func (e event) forget() (processors.Outbound, error) {
	return processors.Outbound{
		Topic: e.catalog.ThinkRequestResponse.Name(), Key: e.session(),
		Headers: goka.Headers{topics.HeaderID: []byte(e.id + "/forget")},
	}, nil
}

// decision is what the person decided about a request for approval. Package gate answers it. Of someone in a group whom the
// platform does not name it cannot be told whether they may decide.
func (e event) decision(gate string, verdict topics.GateVerdict, reason string, pressed bool) ([]processors.Outbound, error) {
	switch o := e.out.Origin; {
	case !e.catalog.GateDecisions.Spec().Created:
		return one(e.reply(noGates))
	case o.Group && o.User == "":
		return one(e.reply(unnamed))
	case o.Proof != topics.ProofPlatform && (o.Proof != topics.ProofCode || pressed):
		return one(e.reply(unproven))
	}
	return one(processors.OutboundOf(e.catalog.GateDecisions, e.session(), topics.GateDecision{
		GateID: gate, SessionID: e.session(), DecisionID: e.id + "/decision", Verdict: verdict,
		Reason: truncate.Text(reason, maxReason), By: e.out.Origin.UserID(), Via: via,
		Channel: topics.EncodeOrigin(e.out.Origin), Pressed: pressed, Approver: e.out.Approver,
	}, e.id+"/decision"))
}

func verdictOf(approve bool) topics.GateVerdict {
	if approve {
		return topics.VerdictApprove
	}
	return topics.VerdictDeny
}

// quote returns a text as a JSON string.
func quote(text string) topics.Raw {
	b, _ := jsontext.AppendQuote(nil, text)
	return b
}
