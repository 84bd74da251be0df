package think

import (
	"time"

	"github.com/turntable-streams/turntable/processors/internal/responder"
	"github.com/turntable-streams/turntable/processors/worker"
)

// Limit bounds the calls that have the same key, see worker.Limit.
type Limit = worker.Limit[Step]

// ModelLimit bounds the calls of each model. Zero fields have the defaults that are named here.
type ModelLimit struct {
	// Model returns the name of the model that a step is for. Steps of other models do not wait for it. By default all steps
	// are for one model, which has the name of the agent. Workers that share a limiter (WithLimiter) and a name share its limits.
	Model func(Step) string
	// Concurrency is how many calls of a model run at a time (default: WithConcurrency is the only limit).
	Concurrency int
	// RequestsPerMinute is how many calls of a model begin in a minute (default: no limit).
	RequestsPerMinute int
	// TokensPerMinute is how many tokens calls of a model use in a minute (default: no limit). A call takes the estimate of
	// Tokens when it begins; when it ends, the estimate is corrected to the tokens that the reply reports.
	TokensPerMinute int
	// Tokens estimates the tokens of a step (default: a quarter of the bytes of its messages).
	Tokens func(Step) int
}

// The names of the limits of a model.
const (
	requestLimit = "model"
	tokenLimit   = "model tokens"
)

// WithModelLimit bounds the calls of each model in this process (default: none). A step that waits delays no step of
// another model, and sessions take turns. A step whose deadline passes while it waits fails.
//
// Independently of this option, a model whose provider limits the rate (an Unavailable with RateLimit or After) is not
// called again until Unavailable.After has passed, or one second if it is 0; other models are.
func WithModelLimit(l ModelLimit) Option {
	return func(r *rules) {
		if l.Concurrency < 0 || l.RequestsPerMinute < 0 || l.TokensPerMinute < 0 {
			r.Invalid("WithModelLimit: a number is negative")
		}
		if l.Tokens != nil && l.TokensPerMinute == 0 {
			r.Invalid("WithModelLimit: Tokens needs TokensPerMinute")
		}
		r.model = l
	}
}

// WithLimits bounds the calls by further keys, for example by tenant (default: none). Further limits are added to those of
// earlier options.
func WithLimits(limits ...Limit) Option {
	return func(r *rules) { r.limits = responder.AddLimits(&r.Settings, r.limits, limits) }
}

// WithLimiter sets the limiter, which workers of one process can share, for example those of agents that use the same model
// (default: one of its own). It must not be nil.
func WithLimiter(l *worker.Limiter) Option { return func(r *rules) { r.SetLimiter(l) } }

// limitsOf returns the limits of an agent's steps, and completes the model's.
func (r *rules) limitsOf(agent string) []Limit {
	m := &r.model
	if m.Model == nil {
		m.Model = func(Step) string { return agent }
	}
	if m.Tokens == nil {
		m.Tokens = estimate
	}
	all := []Limit{
		{Name: "think " + r.Group, Concurrency: r.Concurrency},
		{Name: requestLimit, Key: m.Model, Concurrency: m.Concurrency, PerMinute: m.RequestsPerMinute},
	}
	if m.TokensPerMinute > 0 {
		all = append(all, Limit{Name: tokenLimit, Key: m.Model, PerMinute: m.TokensPerMinute, Cost: m.Tokens})
	}
	return append(all, r.limits...)
}

// bytesPerToken is a rough average.
const bytesPerToken = 4

func estimate(s Step) int {
	size := len(s.Memoir) + len(s.EphemeralPrompt)
	for _, m := range s.Messages {
		size += len(m.Content)
	}
	return size / bytesPerToken
}

const (
	// ignoring is how long the worker waits for a model whose context has ended. Models that publish events need some time.
	ignoring = 5 * time.Second
	// maxHung is how many calls that ignore the end of their context may have lost their place for each that may run.
	maxHung = 10
)

func (r *rules) calls() responder.OverdueCalls {
	return responder.OverdueCalls{Grace: ignoring, Limit: maxHung * int64(r.Concurrency)}
}
