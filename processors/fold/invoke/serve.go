package invoke

import (
	"context"
	"errors"
	"net/http"

	"go.uber.org/zap"
)

// HeaderLastEvent names the last event that a client has; the answer goes on behind it.
const HeaderLastEvent = "Last-Event-ID"

// headerIdempotency makes a repeated request the same turn, where the agent can tell.
const headerIdempotency = "Idempotency-Key"

// serve decides what can be decided before anything runs, and then runs it.
func (c *call) serve() {
	c.accept, c.vercel = ParseAccept(c.r.Header.Values("Accept")...), vercel(c.r.Header)
	if !c.admit() || !c.read() {
		return
	}
	capability := c.door.capability
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
	// The agent's context ends with the answer, whatever became of the client.
	ctx, cancel := context.WithCancel(c.r.Context())
	defer cancel()
	stream, err := c.begin(ctx)
	if err != nil {
		c.failed(err)
		return
	}
	turn := newTurn(stream, c.request.Trace.TraceID)
	switch {
	case !c.answer.Streams():
		c.batch(ctx, turn)
	case !c.stream(ctx, cancel, turn):
		panic(http.ErrAbortHandler) // a transfer that ended well would say that the stream is whole
	}
}

// admit holds that the request is one of the door's, and from somebody who may make it.
func (c *call) admit() bool {
	last := c.r.Header.Get(HeaderLastEvent)
	switch method := c.r.Method; {
	case method == http.MethodOptions && c.door.rules.origin != "":
		h := c.w.Header()
		h.Set("Access-Control-Allow-Methods", "POST, GET, OPTIONS")
		h.Set("Access-Control-Allow-Headers", c.door.rules.allowed)
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
	if a := c.door.rules.authenticate; a != nil {
		caller, err := a(c.r)
		if err != nil {
			e := Error{Status: http.StatusUnauthorized, Text: "Unauthorized"}
			var known *Error
			if errors.As(err, &known) && known.Status >= 400 {
				e = *known
			}
			c.detail(e.Status, Sanitize(e.Text))
			return false
		}
		c.caller = caller
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
		// Whoever sends it believes the turn to be running: it must not run a second time.
		c.detail(http.StatusGone, "turns of this agent cannot be read again")
		return false
	}
	c.last, c.resumes = id, true
	return true
}

// read reads the request: its body, its flags, its session, its trace.
func (c *call) read() bool {
	body, err := readBody(c.w, c.r, c.door.rules.bodyLimit, c.resumes)
	if err != nil {
		c.invalid(bodyStatus(err), err.Error())
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
	if may := c.caller.MayUse; may != nil && !may(c.session) {
		c.detail(http.StatusForbidden, "Forbidden")
		return false
	}
	c.request = Request{
		SessionID: c.session, Caller: c.caller, Body: body, Data: member(body, "data"), Trace: c.trace,
		IdempotencyKey: c.r.Header.Get(headerIdempotency),
	}
	return true
}

// prepare makes the request what the agent gets.
func (c *call) prepare() {
	c.request.Flags = Flags{Stream: c.answer.Streams(), Trim: c.flags.trim, Force: c.flags.force}
	if c.vercel {
		c.continuation = continuation(c.request.Messages())
		c.request = canonical(c.request)
	}
}

// begin begins a turn, or goes on with one.
func (c *call) begin(ctx context.Context) (stream Stream, err error) {
	if c.resumes {
		return c.door.resumer.Resume(ctx, c.request, c.last)
	}
	if resolve := c.door.rules.resolve; resolve != nil && (c.flags.resolve == nil || *c.flags.resolve) {
		if c.request, err = resolve(ctx, c.request); err != nil {
			return nil, err
		}
	}
	return c.door.agent.Invoke(ctx, c.request)
}

// failed answers an error of the agent, or of what stands before it.
func (c *call) failed(err error) {
	if c.r.Context().Err() != nil {
		// Where the server stops, its client is still there, and would take an empty answer for a success.
		c.fail(told(errClosed))
		return
	}
	var known *Error
	if !errors.As(err, &known) && !errors.Is(err, ErrGone) {
		c.door.rules.logger.Error("invoke: agent failed", zap.Error(err))
	}
	c.fail(told(err))
}
