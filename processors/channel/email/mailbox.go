package email

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
	"go.uber.org/zap"

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
	// Poll is how often the mailbox is searched (default 1 min). With a server that has IDLE (RFC 2177) new mail is noticed at
	// once, and the search finds out that a connection is lost.
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
type Mailbox struct {
	config MailboxConfig
	accept *acceptance
	order  *order
	begun  atomic.Bool
	// backoff is the wait after a failure, of growing length.
	backoff backoff.BackOff
}

const (
	firstWait   = time.Second
	longestWait = 2 * time.Minute
	// batch is how many messages are received before the next search.
	batch = 50
)

// NewMailbox returns a mailbox. It opens no connection. It logs a warning if senders are not authenticated. The error wraps ErrConfig and does not quote the password.
func NewMailbox(c MailboxConfig, r adapter.Receiver) (*Mailbox, error) {
	accept, err := c.Acceptance.check()
	errs := []error{err}
	invalid := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...))
	}
	if r == nil {
		invalid("no Receiver")
	}
	checkServer(c.Host, c.Port, c.Security, c.Username, c.Password, invalid)
	if c.Username == "" {
		invalid("Username is empty")
	}
	if c.Poll < 0 || c.ReceiveTimeout < 0 {
		invalid("a duration is negative")
	}
	if c.Port == 0 {
		c.Port = 143
		if c.Security == ImplicitTLS {
			c.Port = 993
		}
	}
	setDefault(&c.Folder, "INBOX")
	setDefault(&c.Poll, time.Minute)
	setDefault(&c.ReceiveTimeout, time.Minute)
	if c.Clock == nil {
		c.Clock = clock.System()
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	c.TLS = clientTLS(c.TLS, c.Host)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	accept.warn(c.Logger)
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = firstWait, longestWait
	return &Mailbox{config: c, accept: accept, order: newOrder(r), backoff: wait}, nil
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
		m.config.Logger.Warn("the mailbox cannot be read; it is tried again", zap.String("account", m.config.Account),
			zap.String("reason", imapReason(ctx, err)), zap.Duration("wait", wait))
		clock.Sleep(ctx, m.config.Clock, wait)
	}
	return nil
}

// errReceive is wrapped by errors of the Receiver.
var errReceive = errors.New("the mail was not received")

// imapReason names an error without a server's text, which may quote the login.
func imapReason(ctx context.Context, err error) string {
	var status *imap.Error
	switch {
	case errors.Is(err, errReceive):
		return err.Error()
	case errors.As(err, &status):
		return "the server refused: " + adapter.Code(string(status.Type)+" "+string(status.Code))
	default:
		return networkReason(ctx, err)
	}
}

// connected reads the mailbox over one connection until it fails.
func (m *Mailbox) connected(ctx context.Context) error {
	news := make(chan struct{}, 1)
	client, err := m.dial(ctx, func() {
		select {
		case news <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = client.Close() }) // ends what is being waited for
	defer func() {
		stop()
		_ = client.Close()
	}()
	if err := client.Login(m.config.Username, m.config.Password).Wait(); err != nil {
		return err
	}
	if _, err := client.Select(m.config.Folder, nil).Wait(); err != nil {
		return err
	}
	idles := client.Caps().Has(imap.CapIdle)
	poll := m.config.Clock.NewTicker(m.config.Poll)
	defer poll.Stop()
	for {
		more, err := m.receive(ctx, client)
		if err != nil {
			return err
		}
		m.backoff.Reset()
		if more {
			continue
		}
		if err := wait(ctx, client, idles, news, poll.C()); err != nil {
			return err
		}
	}
}

func (m *Mailbox) dial(ctx context.Context, news func()) (*imapclient.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(m.config.Host, strconv.Itoa(m.config.Port)))
	if err != nil {
		return nil, err
	}
	options := &imapclient.Options{TLSConfig: m.config.TLS, UnilateralDataHandler: &imapclient.UnilateralDataHandler{
		Mailbox: func(data *imapclient.UnilateralDataMailbox) {
			if data.NumMessages != nil {
				news()
			}
		},
	}}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	switch m.config.Security {
	case ImplicitTLS:
		secure := tls.Client(conn, m.config.TLS)
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = conn.Close()
			return nil, err
		}
		conn = secure
	case StartTLS:
		client, err := imapclient.NewStartTLS(conn, options)
		if err != nil {
			_ = conn.Close()
		}
		return client, err
	}
	client := imapclient.New(conn, options)
	if err := client.WaitGreeting(); err != nil {
		_ = client.Close()
		return nil, err
	}
	return client, nil
}

// wait returns when there may be new messages.
func wait(ctx context.Context, client *imapclient.Client, idles bool, news <-chan struct{}, poll <-chan time.Time) (err error) {
	if idles {
		idle, failed := client.Idle()
		if failed != nil {
			return failed
		}
		defer func() {
			if closed := idle.Close(); closed != nil {
				err = closed
			} else if waited := idle.Wait(); waited != nil {
				err = waited
			}
		}()
	}
	select {
	case <-news:
	case <-poll:
	case <-client.Closed():
		return net.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
