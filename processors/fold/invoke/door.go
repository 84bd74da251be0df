package invoke

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"
)

// Door is the HTTP handler of an agent. It answers alike wherever it is mounted, is safe for concurrent use, and needs
// no closing.
//
// Set the ReadTimeout of the http.Server that it runs in: the door bounds what it reads, not how long that takes to
// come; and no WriteTimeout, which would cut long streams: the door sets a deadline for each write.
type Door struct {
	agent      Agent
	resumer    Resumer // nil where turns cannot be read again
	capability Capability
	rules      rules
	slots      chan struct{}
	mu         sync.Mutex // over rules.random
}

// New makes the door of an agent. Without WithAuthenticate it is open to whoever reaches it, which is logged once,
// here.
func New(agent Agent, opts ...Option) (*Door, error) {
	r, err := newRules(opts)
	if agent == nil {
		err = errors.Join(err, fmt.Errorf("%w: no agent", ErrDoor))
	}
	if err != nil {
		return nil, err
	}
	d := &Door{agent: agent, rules: r, slots: make(chan struct{}, r.calls)}
	d.resumer, _ = agent.(Resumer)
	if c, ok := agent.(Capable); ok {
		d.capability = c.Capability()
	}
	if r.capability != nil {
		d.capability = *r.capability
	}
	if r.authenticate == nil {
		r.logger.Warn("invoke door is open: whoever reaches it may use every session")
	}
	return d, nil
}

// ServeHTTP implements http.Handler: POST invokes the agent; with Last-Event-ID, POST and GET read a turn again.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{door: d, w: w, r: r, wire: http.NewResponseController(w)}
	if d.rules.origin != "" {
		w.Header().Set("Access-Control-Allow-Origin", d.rules.origin)
		w.Header().Set("Access-Control-Expose-Headers", exposed)
	}
	select {
	case d.slots <- struct{}{}:
		defer func() { <-d.slots }()
	default:
		w.Header().Set("Retry-After", "1")
		c.detail(http.StatusServiceUnavailable, "too many requests at a time")
		return
	}
	defer func() {
		thrown := recover()
		switch {
		case thrown == nil:
			return
		case thrown == http.ErrAbortHandler || c.begun:
			panic(http.ErrAbortHandler) // cuts the connection: the client sees that the answer is not whole
		}
		// What was thrown may quote a request.
		d.rules.logger.Error("invoke: panic", zap.String("type", fmt.Sprintf("%T", thrown)))
		c.fail(told(errPanic))
	}()
	c.serve()
}

var errPanic = errors.New("invoke: panic")

// call is one request on its way.
type call struct {
	door  *Door
	w     http.ResponseWriter
	r     *http.Request
	wire  *http.ResponseController
	begun bool // something of a stream was written

	accept  Accept
	vercel  bool
	trace   Trace
	session string
	caller  Caller
	flags   flags
	request Request
	last    EventID // zero: a new turn
	resumes bool

	answer       MediaType
	continuation string // id of the message that a Vercel client goes on with
}

// deadline gives the client its time for the next write.
func (c *call) deadline() {
	if d := c.door.rules.writeTimeout; d > 0 {
		_ = c.wire.SetWriteDeadline(time.Now().Add(d)) // a writer without deadlines has none
	}
}
