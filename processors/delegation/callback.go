package delegation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/turntable-streams/turntable/internal/rows/delegationrow"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// senderMark begins the sender of a message that announces a result. No person has such a name.
const senderMark = "hand:"

// dispatch writes the next message that announces a result, unless the output of the one before it is awaited.
func (t *transition) dispatch() {
	for t.row.InFlight == nil && len(t.row.Pending) > 0 {
		c := t.row.Pending[0]
		t.row.Pending, t.changed = slices.Delete(t.row.Pending, 0, 1), true
		request := t.callbackRequest(c.CallKey)
		machine.Emit(&t.Effects, t.topics.MessageInput, t.key, callbackMessage(request), t.message(c, request))
		if !t.takeAnswered(request) {
			t.row.InFlight = &delegationrow.InFlight{RequestId: request, UntilMs: t.now.Add(t.config.CallbackWait).UnixMilli()}
		}
	}
}

// announced handles the output of a message that announces a result: the next one is written. An output that is read before the
// row says that its message was written is remembered: after a crash, the message is written again, and has no other output.
func (t *transition) announced(e outputArrived) {
	if e.Output.RequestID == nil || !strings.HasPrefix(*e.Output.RequestID, callbackPrefix) {
		return
	}
	request := cut(*e.Output.RequestID, 2*len(callbackPrefix)+32)
	if t.row.InFlight.GetRequestId() == request {
		t.row.InFlight, t.changed = nil, true
		t.dispatch()
		return
	}
	t.takeAnswered(request)
	t.row.Answered = append(t.row.Answered, &delegationrow.Answered{RequestId: request, UntilMs: t.now.Add(earlyFor).UnixMilli()})
	t.changed = true
	if len(t.row.Answered) > maxAnswered {
		t.row.Answered = slices.Delete(t.row.Answered, 0, 1)
	}
}

// takeAnswered forgets the output of a message. It returns false if none was read.
func (t *transition) takeAnswered(request string) bool {
	i := slices.IndexFunc(t.row.Answered, func(x *delegationrow.Answered) bool { return x.RequestId == request })
	if i >= 0 {
		t.row.Answered, t.changed = slices.Delete(t.row.Answered, i, i+1), true
	}
	return i >= 0
}

// message returns the message that announces a result. Its origin is that of the call, so its answer goes there; without one it stays
// in the session.
func (t *transition) message(c *delegationrow.Callback, request string) topics.Message {
	origin := originOf(c.Origin)
	metadata := append([]byte(`{"request_id":`), textValue(request)...)
	if len(c.Origin) > 0 {
		metadata = append(append(metadata, `,"`+topics.MetaOrigin+`":`...), c.Origin...)
	}
	metadata = append(append(metadata, `,"`+topics.MetaResult+`":`...), topics.EncodeDelegationNote(topics.DelegationNote{
		CallbackID: c.CallbackId, Status: topics.DelegationStatus(c.Status), Sender: senderMark + c.Target, Name: c.Target,
		Depth: c.Depth,
	})...)
	metadata = append(append(metadata, `,"`+topics.MetaPrompt+`":`...), textValue(t.prompt(origin))...)
	role, at := roleUser, topics.Timestamp(msTime(c.EndedMs))
	return topics.Message{
		SessionID: &t.key, UserID: userOf(origin), Role: &role, Timestamp: &at,
		Content:  textValue(content(c, t.config.RecordLimit/2)),
		Metadata: append(metadata, '}'),
	}
}

// content returns the text of the message that announces a result. most is the limit of the result's size as JSON.
func content(c *delegationrow.Callback, most int) string {
	result := fit(c.Text, most)
	text := fmt.Sprintf("[From: %s%s] Result of the delegation %s (%s), not written by the user:\n%s",
		senderMark, c.Target, printable(c.CallbackId), c.Status, result)
	if int64(len(result)) < c.Size {
		text += "\n\n[Cut: the first " + strconv.Itoa(len(result)) + " of " + strconv.FormatInt(c.Size, 10) +
			" bytes. All of it can be read at GET " + readAt(c.CallbackId) + ".]"
	}
	return text
}

// prompt returns the ephemeral prompt of the message: that of the account, then the callback prompt.
func (t *transition) prompt(origin topics.Origin) string {
	const between = "\n\n"
	account := strings.TrimSpace(t.config.Prompts(origin))
	if account == "" {
		return t.config.CallbackPrompt
	}
	return fit(account, maxPrompt-len(between)-len(t.config.CallbackPrompt)) + between + t.config.CallbackPrompt
}

// printable returns an ID for a line of text: characters that IDs do not need become "_".
func printable(id string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._:/~-", r) {
			return r
		}
		return '_'
	}, id)
}
