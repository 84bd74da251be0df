package turnhttp

import (
	"bytes"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/processors/turn/token"
	"github.com/turntable-streams/turntable/topics"
)

// ToolResponse returns the handler for the results of asynchronous tools: POST the result as JSON, with a callback token
// (package token) as bearer token. An object is used as the result unchanged; any other value is wrapped as
// {"result":value}. After the result is acknowledged, it answers 202. A token may be used more than once, unless
// Config.SingleUseTokens is set: the turn takes the first result of a call. The result names the call of the token, so the turn
// never assigns it to another call with the same tool_use_id. Results of tokens without a CallID, which FlightDeck and older
// builds mint, are assigned to the open call with their tool_use_id and tool name.
//
// An object with "status":"error" and an "error" that is not null is a failure of the tool. It becomes a result with status
// error, so that the model can see it. Every other body is a success, as in FlightDeck.
//
// An Idempotency-Key applies to the call of the token. Within the time of Config.RememberFor, this process gives repeats the
// same answer and writes the result once. Another process writes it again with the same turntable.id.
func (h *Handler) ToolResponse() http.Handler { return http.HandlerFunc(h.serveToolResponse) }

func (h *Handler) serveToolResponse(w http.ResponseWriter, r *http.Request) {
	v, refusal := h.results.Open(w, r)
	defer v.Close()
	if refusal != nil {
		refusal.Answer().Write(w)
		return
	}
	h.toolResponse(w, r, v).Write(w)
}

func (h *Handler) toolResponse(w http.ResponseWriter, r *http.Request, v *entrance.Visit) answer {
	if r.Method != http.MethodPost {
		return entrance.Failed(http.StatusMethodNotAllowed, "Method not allowed")
	}
	claims, err := h.tokens.Verify(bearer(r), h.config.Clock.Now())
	if err != nil {
		return unverified(w, r, v, err)
	}
	if refusal := v.Admit(auth.Caller{Subject: "callback " + claims.SessionID}); refusal != nil {
		return refusal.Answer()
	}
	body, rejection, ok := h.readBody(w, v)
	if !ok {
		return rejection
	}
	result := resultFor(claims, body, h.config.Clock.Now())
	key, ok := entrance.IdempotencyKey(r)
	switch {
	case !ok:
		return entrance.Failed(http.StatusBadRequest, "Idempotency-Key is not usable")
	case key == "":
		return h.answerCall(r, v, claims, result, h.resultID(claims, "", body))
	}
	same := fingerprintOf("tool response body", string(body))
	call := fingerprintOf("tool response", claims.SessionID, claims.ToolUseID, key, claims.CallID)
	return h.answerOnce(r.Context(), call, same, func() answer {
		return h.answerCall(r, v, claims, result, h.resultID(claims, key, body))
	})
}

// resultID returns the turntable.id of a result, empty for none. It begins with the ID of the call if the token has it: the
// turn then takes the result only for that call. Repeats have the same ID: those with the same Idempotency-Key or, without
// one, with the same body. Tokens without a CallID are FlightDeck's and those of older builds.
func (h *Handler) resultID(claims token.Claims, key string, body []byte) string {
	switch {
	case claims.CallID != "" && key != "":
		return claims.CallID + "/callback/" + derived("callback key", key)
	case claims.CallID != "":
		return claims.CallID + "/callback/" + derived("callback body", string(body))
	case key != "":
		return derived("tool response", h.topics.Agent, claims.SessionID, claims.ToolUseID, key) + "/result"
	default:
		return ""
	}
}

// unverified answers a request without a valid token. The signature of a token cannot be guessed, so a valid one is accepted
// also from an address with many failures.
func unverified(w http.ResponseWriter, r *http.Request, v *entrance.Visit, err error) answer {
	var rejection token.Rejection
	if !errors.As(err, &rejection) {
		return entrance.Internal()
	}
	refusal := &entrance.Refusal{Status: http.StatusUnauthorized, Text: string(rejection)}
	if bearer(r) == "" {
		return v.Refuse(refusal).Answer()
	}
	return v.Fail("", refusal).Answer()
}

// bearer returns the bearer token of a request, or an empty text if it has none.
func bearer(r *http.Request) string {
	after, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return ""
	}
	return strings.TrimSpace(after)
}

// answerCall writes a result. With Config.SingleUseTokens it rejects the second one of a call.
func (h *Handler) answerCall(
	r *http.Request, v *entrance.Visit, claims token.Claims, result topics.ToolUseResult, id string,
) answer {
	if !h.config.SingleUseTokens {
		return h.writeResult(r, v, claims, result, id)
	}
	issued := strconv.FormatInt(claims.IssuedAt.Unix(), 10)
	call := fingerprintOf("used token", claims.SessionID, claims.ToolUseID, claims.CallID, issued)
	a, repeated, err := h.used.Do(r.Context(), call, func() (answer, bool) {
		a := h.writeResult(r, v, claims, result, id)
		return a, accepted(a)
	})
	switch {
	case err != nil:
		return entrance.Internal()
	case repeated:
		return entrance.Failed(http.StatusUnauthorized, "Token has been used")
	}
	return a
}

func (h *Handler) writeResult(
	r *http.Request, v *entrance.Visit, claims token.Claims, result topics.ToolUseResult, id string,
) answer {
	out, err := processors.OutboundOf(h.topics.ToolUseResult, claims.SessionID, result, id)
	if err != nil {
		return v.Unwritten(err).Answer()
	}
	if claims.ToolID == nil {
		// FlightDeck omits the field here. The first match is the field: inside a text the quotes would be escaped.
		out.Value = bytes.Replace(out.Value, []byte(`,"tool_id":null`), nil, 1)
	}
	if refusal := v.Publish(h.to, out); refusal != nil {
		return refusal.Answer()
	}
	v.Record(auth.AuditAnswer, claims.SessionID, claims.ToolUseID, http.StatusAccepted)
	return answer{Status: http.StatusAccepted, Body: entrance.Object("status", "accepted", "tool_use_id", claims.ToolUseID)}
}

// resultFor returns the result with this body for the call of the token.
func resultFor(claims token.Claims, body topics.Raw, now time.Time) topics.ToolUseResult {
	status, at := "success", topics.Timestamp(now)
	switch {
	case body == nil: // blank body
		body = topics.Raw(`{"result":null}`)
	case body[0] == 'n':
		body = topics.Raw(`{}`)
	case failed(body):
		status = statusError
	}
	latency := int64(0)
	if !claims.IssuedAt.IsZero() {
		latency = max(0, now.Sub(claims.IssuedAt).Milliseconds())
	}
	return topics.ToolUseResult{
		SessionID: &claims.SessionID, ToolUseID: &claims.ToolUseID, ToolID: claims.ToolID, Name: claims.Name,
		Result: topics.WrapResult(compact(body)), LatencyMS: latency, Status: &status,
		TotalTools: int64(claims.TotalTools), Timestamp: &at,
	}
}

const statusError = "error"

// failed reports whether a body states a failure of the tool.
func failed(body topics.Raw) bool {
	m := members(body, "status", "error")
	status := m["status"]
	return len(status) > 0 && status[0] == '"' && textForm(status) == statusError && !isNull(m["error"])
}
