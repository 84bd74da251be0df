package invoke

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
)

// Door is the HTTP handler of an agent. It does not depend on the path it is mounted at, is safe for concurrent use, and
// does not need to be closed.
//
// Connections and the headers of requests are limited by the http.Server: use package processors/httpserver. Do not set
// WriteTimeout, which would end long streams: the door sets a deadline for each write.
type Door struct {
	agent    Agent
	resumer  Resumer // nil if turns cannot be read again
	answers  bool    // requests can answer interactions
	config   Config
	entrance *entrance.Entrance
	mu       sync.Mutex // guards config.Random
}

// New returns the door of an agent. Without Config.Authenticate it accepts anyone and logs a warning once. It fails with
// ErrConfig if agent is nil or a field is out of range.
func New(agent Agent, c Config) (*Door, error) {
	var check bounds.Check
	if agent == nil {
		check.Wrong("agent", "is nil")
	}
	c.complete(&check)
	d := &Door{agent: agent, config: c, entrance: c.entrance(&check)}
	if err := check.Err(ErrConfig); err != nil {
		return nil, err
	}
	d.resumer, _ = agent.(Resumer)
	if a, ok := agent.(interface{ Answers() bool }); ok {
		d.answers = a.Answers()
	}
	entrance.WarnOpen(c.Door, "", "invoke: the door is unauthenticated: every client can use every session")
	return d, nil
}

// ServeHTTP implements http.Handler. POST invokes the agent. POST and GET with Last-Event-ID resume a turn.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &exchange{door: d, w: w, r: r, wire: http.NewResponseController(w)}
	visit, refusal := d.entrance.Open(w, r)
	defer visit.Close()
	if refusal != nil {
		c.refuse(refusal)
		return
	}
	c.visit = visit
	defer func() {
		thrown := recover()
		switch {
		case thrown == nil:
			return
		case thrown == http.ErrAbortHandler || c.begun:
			panic(http.ErrAbortHandler) // aborts the connection, so that the client sees that the response is incomplete
		}
		// The panic value may contain parts of a request, so only its type is logged.
		d.config.Logger.Error("invoke: panic", zap.String("type", fmt.Sprintf("%T", thrown)))
		c.fail(clientError(errPanic))
	}()
	c.serve()
}

var errPanic = errors.New("invoke: panic")

// exchange is one HTTP request and its response.
type exchange struct {
	door  *Door
	w     http.ResponseWriter
	r     *http.Request
	wire  *http.ResponseController
	visit *entrance.Visit
	begun bool // part of a stream was written

	accept  Accept
	vercel  bool
	trace   Trace
	session string
	flags   flags
	request Request
	last    EventID // zero: a new turn
	resumes bool
	// continues means that the request answers interactions; the client has the events up to last.
	continues bool

	answer       MediaType
	continuation string // id of the message that a Vercel client continues
}

// deadline sets the deadline of the next write.
func (c *exchange) deadline() {
	if d := c.door.config.WriteTimeout; d > 0 {
		_ = c.wire.SetWriteDeadline(time.Now().Add(d)) // fails if the writer does not support deadlines
	}
}
