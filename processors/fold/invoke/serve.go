package invoke

import (
	"context"
	"errors"
	"net/http"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors/auth"
)

// HeaderLastEvent is the request header with the ID of the last event that the client has received. The response continues
// after that event.
const HeaderLastEvent = "Last-Event-ID"

// headerIdempotency is the request header that makes a repeated request the same turn, if the agent supports it.
const headerIdempotency = "Idempotency-Key"

// serve validates the request, runs the agent and writes the response.
func (c *exchange) serve() {
	c.accept, c.vercel = ParseAccept(c.r.Header.Values("Accept")...), vercel(c.r.Header)
	if !c.admit() || !c.read() {
		return
	}
	capability := c.door.config.Capability
	if isSet(c.flags.force) && !capability.FlagBlind && capability.Shape != StreamOnly {
		c.fail(*errForce)
		return
	}
	answer, supported, ok := negotiate(c.accept, capability.Shape, c.flags.stream)
	if !ok {
		c.notAcceptable(supported)
		return
	}
	c.answer = answer
	c.prepare()
	// The agent's context is cancelled when the response is complete.
	ctx, cancel := context.WithCancel(c.r.Context())
	defer cancel()
	stream, err := c.begin(ctx)
	if err != nil {
		c.failed(err)
		return
	}
	reading, stop := c.untilExpiry(ctx)
	defer stop()
	turn := newTurn(stream, c.request.Trace.TraceID)
	if s, ok := stream.(*pipelineStream); ok && s.after != (EventID{}) {
		c.last, c.continues = s.after, true
	}
	switch {
	case c.continues:
		c.visit.Record(auth.AuditAnswer, c.session, turn.at.Turn, http.StatusOK)
	case !c.resumes:
		c.visit.Record(auth.AuditWrite, c.session, turn.at.Turn, http.StatusOK)
	}
	switch {
	case !c.answer.Streams():
		c.batch(reading, turn)
	case !c.stream(ctx, reading, cancel, turn):
		panic(http.ErrAbortHandler) // a normal end of the response would tell the client that the stream is complete
	}
}

// admit checks the method, the caller and Last-Event-ID. If it returns false, it has written the response.
func (c *exchange) admit() bool {
	last := c.r.Header.Get(HeaderLastEvent)
	switch method := c.r.Method; {
	case method == http.MethodOptions && len(c.door.config.Origins) > 0:
		c.w.WriteHeader(http.StatusNoContent)
		return false
	case method == http.MethodPost:
	case method == http.MethodGet && c.door.resumer != nil && last != "":
	default:
		allowed := http.MethodPost
		if c.door.resumer != nil {
			allowed = "GET, POST"
		}
		c.w.Header().Set("Allow", allowed)
		c.detail(http.StatusMethodNotAllowed, "Method Not Allowed")
		return false
	}
	if !c.authenticate(last != "") {
		return false
	}
	if last == "" {
		return true
	}
	id, err := ParseEventID(last)
	switch {
	case err != nil:
		c.detail(http.StatusBadRequest, "Last-Event-ID is not one of this door")
		return false
	case c.door.resumer == nil:
		// The client expects a running turn, so the agent must not run again.
		c.detail(http.StatusGone, "turns of this agent cannot be read again")
		return false
	}
	c.last, c.resumes = id, true
	return true
}

// read reads the body, the trace, the session and the flags of the request. If it returns false, it has written the
// response.
func (c *exchange) read() bool {
	raw, refusal := c.visit.ReadBody(c.w)
	if refusal != nil {
		c.refuse(refusal)
		return false
	}
	body, err := bodyOf(raw, c.resumes)
	if err != nil {
		c.invalid(http.StatusUnprocessableEntity, err.Error())
		return false
	}
	if c.trace, c.session, err = c.identify(body); err != nil {
		switch {
		case errors.Is(err, errSession):
			c.fail(Error{Status: http.StatusBadRequest, Type: TypeInvalidSession, Text: err.Error()})
		case errors.Is(err, errSessionType):
			c.invalid(http.StatusUnprocessableEntity, err.Error())
		default:
			c.failed(err)
		}
		return false
	}
	if c.flags, err = readFlags(body, c.r.Header); err != nil {
		c.invalid(http.StatusUnprocessableEntity, err.Error())
		return false
	}
	if refusal := c.visit.Session(c.session); refusal != nil {
		c.refuse(refusal)
		return false
	}
	c.request = Request{
		SessionID: c.session, Caller: c.visit.Caller, Body: body, Data: member(body, "data"), Trace: c.trace,
		IdempotencyKey: c.r.Header.Get(headerIdempotency), callerKey: c.visit.Key(),
	}
	return true
}

// prepare completes the request that is passed to the agent.
func (c *exchange) prepare() {
	c.request.Flags = Flags{Stream: c.answer.Streams(), Trim: c.flags.trim, Force: c.flags.force}
	if c.vercel {
		c.continuation = continuation(c.request.Messages())
		c.request = canonical(c.request)
	}
}

// begin begins a turn or resumes one.
func (c *exchange) begin(ctx context.Context) (stream Stream, err error) {
	if c.resumes {
		return c.door.resumer.Resume(ctx, c.request, c.last)
	}
	if resolve := c.door.config.Resolve; resolve != nil && (c.flags.resolve == nil || *c.flags.resolve) {
		if c.request, err = resolve(ctx, c.request); err != nil {
			return nil, err
		}
	}
	return c.door.agent.Invoke(ctx, c.request)
}

// failed answers an error of the agent or of Config.Resolve.
func (c *exchange) failed(err error) {
	if errors.Is(err, errCredential) {
		c.detail(http.StatusUnauthorized, "Unauthorized")
		return
	}
	if c.r.Context().Err() != nil {
		// If the server is stopping, the client is still connected and would take an empty response for a success.
		c.fail(clientError(errClosed))
		return
	}
	var reported *Error
	if !errors.As(err, &reported) && !errors.Is(err, ErrGone) {
		c.door.config.Logger.Error("invoke: agent failed", zap.Error(err))
	}
	c.fail(clientError(err))
}
