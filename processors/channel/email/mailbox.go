package email

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/emersion/go-imap/v2"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
)

// MailboxConfig is the configuration of a Mailbox.
type MailboxConfig struct {
	Acceptance
	// Host and Port are those of the IMAP server. Port 0 means 993, or 143 for StartTLS and NoTLS.
	Host     string
	Port     int
	Security Security
	// TLS is used for connections; nil means the defaults for Host. It is cloned.
	TLS *tls.Config
	// Username and Password are required.
	Username, Password string
	// Folder is the mailbox that is read (default INBOX). Nothing else should mark its messages as seen.
	Folder string
	// Poll is how often the mailbox is searched (default 1 min, at most 25 min). With a server that has IDLE (RFC 2177) new mail
	// is noticed at once, and the search finds out that a connection is lost.
	Poll time.Duration
	// ReceiveTimeout is how long the Receiver may take (default 1 min). Then the mail is tried again.
	ReceiveTimeout time.Duration
	// Clock is for Poll and the waits between connections (default: the system's).
	Clock processors.Clock
	// Logger logs errors and what was dropped and refused, without addresses and texts (default: none).
	Logger *zap.Logger
}

// Mailbox passes the unseen messages of an IMAP mailbox to a Receiver, the oldest first and one at a time.
//
// A message is marked as seen when Receive has returned nil, or when the mail is one that is dropped or refused; no one is told of
// that. After an error of Receive the message stays unseen, later ones wait, and it is tried again. A message may therefore be
// received more than once; its Event is then the same.
//
// A message that the server cannot deliver, or delivers in a form that cannot be parsed, stays unseen, is logged with its UID, and
// later ones are received. It is tried again after a minute, then after growing waits of up to an hour, and when Run starts.
//
// A server has a minute to answer a command, and more for what it sends at 16 KiB/s or faster. Otherwise the connection is closed, a
// warning is logged, and the mailbox connects again. An answer may be 1 MiB larger than MaxMessage.
type Mailbox struct {
	config MailboxConfig
	accept *acceptance
	to     adapter.Receiver
	begun  atomic.Bool
	// backoff is the wait after a failure, of growing length.
	backoff   backoff.BackOff
	postponed postponed
	// connect opens the connections. Tests replace it.
	connect func(ctx context.Context, network, address string) (net.Conn, error)
}

const (
	firstWait   = time.Second
	longestWait = 2 * time.Minute
	// batch is how many messages are received before the next search.
	batch = 50
	// longestIdle is shorter than the 30 min after which servers may end an IDLE.
	longestIdle = 25 * time.Minute
)

// NewMailbox returns a mailbox. It opens no connection. It logs a warning if senders are not authenticated. The error wraps ErrConfig and does not quote the password.
func NewMailbox(c MailboxConfig, r adapter.Receiver) (*Mailbox, error) {
	var check bounds.Check
	accept := c.Acceptance.check(&check)
	if r == nil {
		check.Wrong("Receiver", "is nil")
	}
	checkServer(&check, c.Host, &c.Port, c.Security, 143, 993, c.Username, c.Password)
	if c.Username == "" {
		check.Wrong("Username", "is empty")
	}
	c.Folder = cmp.Or(c.Folder, "INBOX")
	bounds.AtLeast(&check, "Poll", &c.Poll, time.Minute, 1)
	bounds.AtLeast(&check, "ReceiveTimeout", &c.ReceiveTimeout, time.Minute, 1)
	if c.Clock == nil {
		c.Clock = clock.System()
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	c.TLS = clientTLS(c.TLS, c.Host)
	if err := check.Err(ErrConfig); err != nil {
		return nil, err
	}
	accept.warn(c.Logger)
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = firstWait, longestWait
	return &Mailbox{config: c, accept: accept, to: inOrder(r), backoff: wait, connect: (&net.Dialer{}).DialContext}, nil
}

// Run reads the mailbox until ctx ends and then returns nil. It connects again after errors, with growing waits of up to 2 min.
// It may be called once. Only one process should read a mailbox: others receive the same mail again, which has no effect but work.
func (m *Mailbox) Run(ctx context.Context) error {
	if !m.begun.CompareAndSwap(false, true) {
		return fmt.Errorf("%w: Run may be called only once", ErrConfig)
	}
	for ctx.Err() == nil {
		err := m.connected(ctx)
		if ctx.Err() != nil {
			return nil
		}
		wait := m.backoff.NextBackOff()
		m.config.Logger.Warn("the mailbox cannot be read; it is tried again", append(imapReason(ctx, err),
			zap.String("account", m.config.Account), zap.Duration("wait", wait))...)
		clock.Sleep(ctx, m.config.Clock, wait)
	}
	return nil
}

// errReceive is wrapped by errors of the Receiver.
var errReceive = errors.New("the mail was not received")

// connected reads the mailbox over one connection until it fails.
func (m *Mailbox) connected(ctx context.Context) error {
	news := make(chan struct{}, 1)
	s, err := m.dial(ctx, func() {
		select {
		case news <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { s.conn.fail(ctx.Err()) }) // ends what is being waited for
	defer func() {
		stop()
		_ = s.client.Close()
	}()
	err = s.ask("LOGIN", func() error { return s.client.Login(m.config.Username, m.config.Password).Wait() })
	if err != nil {
		return err
	}
	var selected *imap.SelectData
	err = s.ask("SELECT", func() (err error) {
		selected, err = s.client.Select(m.config.Folder, nil).Wait()
		return err
	})
	if err != nil {
		return err
	}
	var idles bool
	err = s.ask("CAPABILITY", func() error {
		idles = s.client.Caps().Has(imap.CapIdle)
		return nil
	})
	if err != nil {
		return err
	}
	m.postponed.folder(selected.UIDValidity)
	poll := m.config.Clock.NewTicker(min(m.config.Poll, longestIdle))
	defer poll.Stop()
	for {
		more, err := m.receive(ctx, s)
		if err != nil {
			return err
		}
		m.backoff.Reset()
		if more {
			continue
		}
		if err := s.wait(ctx, idles, news, poll.C()); err != nil {
			return err
		}
	}
}
