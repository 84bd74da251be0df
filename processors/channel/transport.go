package channel

import (
	"context"
	"fmt"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/inorder"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/topics"
)

// Kind is the kind of route of deliveries to channels: a key of sink.Config.Transports.
const Kind = topics.KindChannel

// The reasons of receipts, besides those of adapters.
const (
	ReasonNoOrigin  = "origin cannot be read"
	ReasonNoChannel = "channel is not configured"
	ReasonTooLong   = "text is too long to be spoken"
	ReasonBusy      = topics.ReasonConversationBusy
	ReasonContinues = topics.ReasonContinues
	reasonPanic     = "adapter panicked"
	reasonOther     = "failed"
	// margin is what is left of a lease for the receipt. An attempt whose lease ends within reserve sends no further chunk.
	margin  = 2 * time.Second
	reserve = 5 * time.Second
	// remembered is the number of messages that a process remembers.
	remembered = 4096
)

// AccountAdapter is the adapter of an account of the settings.
type AccountAdapter struct {
	// Name is the name of the account; its channel is that of the adapter.
	Name    string
	Adapter adapter.Adapter
}

// Transport sends messages to channels. It implements sink.Exchanger and is safe for concurrent use. Use one for all sinks of
// a process: it orders the messages of a conversation.
type Transport struct {
	agent         string
	live          Live
	adapters      map[string]adapter.Adapter // by channel/account
	timeout       time.Duration
	conversations inorder.Turns[string]      // each sends one message at a time
	reports       *lru.Cache[string, Report] // by delivery ID, after a chunk was accepted
}

var _ sink.Exchanger = (*Transport)(nil)

// TransportConfig configures NewTransport. Fields that are zero have their defaults.
type TransportConfig struct {
	// SendTimeout is how long an adapter may take for a chunk (default 20 s). It must be shorter than delivery.Config.Lease.
	SendTimeout time.Duration
}

// NewTransport returns a transport for the answers of an agent, whose name precedes them if the settings say so. live is called for each
// chunk, by several goroutines: an account that was removed gets no further one. The error wraps ErrConfig: an account has no
// adapter or name, or there are two of the same channel and name.
func NewTransport(agent string, live Live, accounts []AccountAdapter, c TransportConfig) (*Transport, error) {
	t := &Transport{agent: agent, live: live, adapters: map[string]adapter.Adapter{}}
	t.reports, _ = lru.New[string, Report](remembered) // fails for a size below 1
	if live == nil {
		return nil, fmt.Errorf("%w: settings are nil", ErrConfig)
	}
	for i, a := range accounts {
		if a.Adapter == nil || a.Name == "" {
			return nil, fmt.Errorf("%w: account %d has no adapter or no name", ErrConfig, i)
		}
		name := topics.Origin{Channel: a.Adapter.Channel(), Account: a.Name}.Destination().Service
		if t.adapters[name] != nil {
			return nil, fmt.Errorf("%w: two accounts are %s", ErrConfig, name)
		}
		t.adapters[name] = a.Adapter
	}
	var check bounds.Check
	bounds.AtLeast(&check, "SendTimeout", &c.SendTimeout, 20*time.Second, 1)
	t.timeout = c.SendTimeout
	return t, check.Err(ErrConfig)
}

// Deliver is Exchange without the response.
func (t *Transport) Deliver(ctx context.Context, d topics.Delivery) error {
	_, err := t.Exchange(ctx, sink.Attempt{Delivery: d})
	return err
}

// Exchange sends what was not sent yet of a message. It blocks until the platform has accepted all chunks or refused one, or ctx
// ends, and while another message of the conversation is sent. The response is a Report, nil if nothing was sent. The error
// is a *sink.Failure.
func (t *Transport) Exchange(ctx context.Context, a sink.Attempt) (response topics.Raw, err error) {
	m, ok := readMessage(a.Delivery)
	if !ok {
		return nil, &sink.Failure{Reason: ReasonNoOrigin, Final: true}
	}
	err = &sink.Failure{Reason: ReasonBusy} // if ctx ends before the turn of the message
	_ = t.conversations.Do(ctx, m.origin.Session(""), func() error {
		response, err = t.exchange(ctx, a, m)
		return nil
	})
	return response, err
}

func (t *Transport) exchange(ctx context.Context, a sink.Attempt, m message) (topics.Raw, error) {
	report, begun := t.progress(a.Delivery)
	to, account, ok := t.account(m.origin)
	switch {
	case !ok && begun:
		return report.raw(), &sink.Failure{Reason: ReasonNoChannel, Final: true}
	case !ok:
		return nil, &sink.Failure{Reason: ReasonNoChannel, Final: true}
	}
	traits := to.Traits()
	if m.failed && !begun && (account.QuietErrors || traits.QuietErrors) {
		return suppressed("errors are not shown here")
	}
	how := renderingOf(account, traits)
	if begun {
		how = report.pinned()
	}
	chunks := how.chunks(m.content, t.agent)
	switch {
	case len(chunks) == 0:
		return suppressed("nothing to send")
	case traits.Spoken && !traits.Limit.Fits(chunks[0]):
		return nil, &sink.Failure{Reason: ReasonTooLong, Final: true}
	}
	s := sending{Transport: t, message: m, to: to, id: a.DeliveryID, key: a.DeliveryID + "/", chunks: chunks, report: how.report(chunks)}
	switch {
	case begun && report.Digest == s.report.Digest:
		s.report = report
	case begun: // another build rendered the chunks: they are sent again as another message
		s.key += s.report.Digest + "/"
	}
	return s.run(ctx)
}

// suppressed ends a message of which nothing is sent.
func suppressed(reason string) (topics.Raw, error) {
	return Report{Status: StatusSuppressed}.raw(), &sink.Failure{Reason: reason, Suppressed: true}
}

// progress returns what earlier attempts of a delivery sent: the report of the newest receipt, or that of this process, which
// knows more if the receipt was late or lost.
func (t *Transport) progress(d topics.Delivery) (r Report, begun bool) {
	r, ok := ReadReport(d.Progress)
	begun = ok && r.Accepted > 0
	if own, ok := t.reports.Get(d.DeliveryID); ok && (!begun || own.Digest == r.Digest && own.Accepted > r.Accepted) {
		return own, true
	}
	return r, begun
}

// account returns the adapter and the settings of an origin's account, as they are now.
func (t *Transport) account(o topics.Origin) (adapter.Adapter, Account, bool) {
	current := t.live()
	to := t.adapters[o.Destination().Service]
	if current == nil || to == nil {
		return nil, Account{}, false
	}
	account, ok := current.Account(o.Channel, o.Account)
	return to, account, ok
}
