package turnhttp

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/processors/turn/internal/limits"
	"github.com/turntable-streams/turntable/topics"
)

// turnRoom is what the turn needs of a record and of a row besides a message, in bytes.
const turnRoom = 80 << 10

// Chat returns the handler for messages: POST a JSON object with session_id and content, and optionally user_id, reply (an
// object with a callbackService) and request_id. After the route and the message are acknowledged, it answers 200 with
// session_id and, if there is one, request_id. The answer to the message is written to message-output.
//
// With an Idempotency-Key, repeats of a request have no further effect. Within the time of Config.RememberFor, this process
// gives the same answer and writes nothing. Another process, or this one after a restart, writes the same records again,
// with the same turntable.id and request_id (if the request has none, it is derived from session and key). The turn drops
// such repeats while it remembers the request (turn.Config.RememberFor). So a repeat starts no second turn within the shorter
// of the two times. A route serves only the message that was written with it.
func (h *Handler) Chat() http.Handler { return http.HandlerFunc(h.serveChat) }

func (h *Handler) serveChat(w http.ResponseWriter, r *http.Request) {
	v, refusal := h.chats.Open(w, r)
	defer v.Close()
	if refusal != nil {
		refusal.Answer().Write(w)
		return
	}
	h.chat(w, r, v).Write(w)
}

func (h *Handler) chat(w http.ResponseWriter, r *http.Request, v *entrance.Visit) answer {
	switch {
	case strings.EqualFold(r.Method, http.MethodOptions):
		return answer{Status: http.StatusNoContent}
	case r.Method != http.MethodPost:
		return entrance.Failed(http.StatusMethodNotAllowed, "Method not allowed")
	}
	if refusal := v.Authenticate(auth.Write); refusal != nil {
		return refusal.Answer()
	}
	body, rejection, ok := h.readBody(w, v)
	if !ok {
		return rejection
	}
	q, wrong := h.readChat(body, v.Caller)
	if wrong != "" {
		return entrance.Failed(http.StatusBadRequest, wrong)
	}
	if refusal := v.Session(q.session); refusal != nil {
		return refusal.Answer()
	}
	key, ok := entrance.IdempotencyKey(r)
	if !ok {
		return entrance.Failed(http.StatusBadRequest, "Idempotency-Key is not usable")
	}
	if key == "" {
		return h.send(r, v, q)
	}
	q.cause = derived("chat", h.topics.Agent, q.session, key)
	same := fingerprintOf("chat body", q.userText(), string(body))
	return h.answerOnce(r.Context(), fingerprintOf("chat", q.session, key), same, func() answer { return h.send(r, v, q) })
}

// question is a decoded chat request.
type question struct {
	session, content string
	user             *string    // nil: none
	request          string     // empty: no request_id
	reply            topics.Raw // nil: no route
	cause            string     // prefix of the ids of its records; empty: no ids
}

// userText returns the user, or an empty text for none.
func (q question) userText() string {
	if q.user == nil {
		return ""
	}
	return *q.user
}

// userOf returns the user of a body by its user_id, which is nil if it is absent.
func (h *Handler) userOf(id topics.Raw) *string {
	text := textForm(id)
	switch {
	case h.config.FlightDeck && id == nil:
		text = topics.PlaceholderUser
	case !h.config.FlightDeck && (isNull(id) || blank(text)):
		return nil
	}
	return &text
}

// readChat decodes a question. wrong is the reason to reject it, if any. The checks are in FlightDeck's order, followed by
// those that FlightDeck does not make.
func (h *Handler) readChat(body topics.Raw, caller auth.Caller) (q question, wrong string) {
	m := members(body, "session_id", "content", "user_id", "reply", "request_id")
	q = question{
		session: textForm(m["session_id"]), content: textForm(m["content"]), user: h.userOf(m["user_id"]),
	}
	if caller.UserID != "" {
		q.user = &caller.UserID
	}
	if blank(q.session) {
		return q, "Missing required field: session_id"
	}
	if blank(q.content) {
		return q, "Missing required field: content"
	}
	var fromReply topics.Raw
	if reply := m["reply"]; !isNull(reply) {
		if reply[0] != '{' {
			return q, "'reply' must be an object"
		}
		r := members(reply, "callbackService", "request_id")
		service := textForm(r["callbackService"])
		switch {
		case isNull(r["callbackService"]) || blank(service):
			return q, "'reply' must include 'callbackService'"
		case !h.config.CallbackServices(service):
			return q, "unknown callbackService: " + service
		}
		q.reply, fromReply = topics.WithoutChannel(compact(reply)), r["request_id"]
	}
	request := m["request_id"]
	if isNull(request) {
		// The route is used only for the message with its request_id.
		request = fromReply
	}
	if !isNull(request) {
		q.request = strings.TrimSpace(textForm(request))
	}
	// Before the checks of the rest, so that their order is the same for every session.
	if err := entrance.CheckSession(q.session); err != nil {
		return q, err.Error()
	}
	switch {
	case !isNull(request) && (request[0] == '{' || request[0] == '[') || len(q.request) > limits.MaxID:
		return q, "'request_id' is not usable"
	case len(q.reply) > limits.MaxDescriptor-len(q.request)-len(`,"request_id":""`):
		return q, "'reply' is too large"
	}
	return q, ""
}

// send publishes the route and then the message of a question.
func (h *Handler) send(r *http.Request, v *entrance.Visit, q question) answer {
	if q.request == "" {
		q.request = q.cause
	}
	now := h.config.Clock.Now().Format(time.RFC3339Nano)
	if q.request == "" && q.reply != nil { // the IDs of the records bind the message to its route
		pair := strconv.FormatUint(h.pairs.Add(1), 10)
		q.cause = derived("pair", h.topics.Agent, q.session, now, r.RemoteAddr, pair, q.userText(), q.content, string(q.reply))
	}
	message, err := processors.OutboundOf(h.topics.MessageInput, q.session, h.message(q), q.id(limits.MessageID))
	if err != nil {
		return v.Unwritten(err).Answer()
	}
	if len(q.session)+len(message.Value) > h.config.RecordLimit-turnRoom {
		return entrance.TooLarge().Answer()
	}
	if message.Headers == nil {
		message.Headers = goka.Headers{}
	}
	records := []processors.Outbound{message}
	if q.reply == nil {
		message.Headers[topics.HeaderRoute] = []byte("null")
	} else {
		route, id := topics.Route{Raw: withRequestID(q.reply, q.request)}, q.id(limits.RouteID)
		if id == "" { // the message names the route by its ID
			id = derived("route", h.topics.Agent, q.session, q.request, now)
		}
		out, err := processors.OutboundOf(h.topics.ReplyTo, q.session, route, id)
		if err != nil {
			return v.Unwritten(err).Answer()
		}
		message.Headers[topics.HeaderRoute] = topics.WithoutToken(route.Raw, topics.RouteID(q.session, id))
		records = []processors.Outbound{out, message}
	}
	if refusal := v.Publish(h.to, records...); refusal != nil {
		return refusal.Answer()
	}
	v.Record(auth.AuditWrite, q.session, q.request, http.StatusOK)
	if q.request == "" {
		return answer{Status: http.StatusOK, Body: entrance.Object("status", "ok", "session_id", q.session)}
	}
	return answer{Status: http.StatusOK, Body: entrance.Object("status", "ok", "session_id", q.session, "request_id", q.request)}
}

// id returns the turntable.id of the question's record of a kind; empty if the question has no cause.
func (q question) id(kind string) string {
	if q.cause == "" {
		return ""
	}
	return q.cause + kind
}

func (h *Handler) message(q question) topics.Message {
	role, at := "user", topics.Timestamp(h.config.Clock.Now())
	metadata := entrance.Object("locale", "en-US", "client", "web")
	if q.request != "" {
		metadata = entrance.Object("locale", "en-US", "client", "web", "request_id", q.request)
	}
	return topics.Message{
		SessionID: &q.session, UserID: q.user, Role: &role, Content: jsonText(q.content), Timestamp: &at,
		Metadata: metadata,
	}
}

func blank(text string) bool { return strings.TrimSpace(text) == "" }

// jsonText returns text as a JSON string.
func jsonText(text string) topics.Raw {
	b, _ := jsontext.AppendQuote(nil, text) // invalid UTF-8 is replaced
	return b
}

// withRequestID returns a compact reply descriptor with request as its request_id. The other members are unchanged.
func withRequestID(reply topics.Raw, request string) topics.Raw {
	if request == "" {
		return reply
	}
	b := topics.Raw{'{'}
	eachMember(reply, func(name string, member topics.Raw) {
		if name != "request_id" {
			b = append(append(append(append(b, jsonText(name)...), ':'), member...), ',')
		}
	})
	b = append(append(b, `"request_id":`...), jsonText(request)...)
	return append(b, '}')
}
