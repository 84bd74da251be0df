package email

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
)

// imapSession is one connection to an IMAP server.
type imapSession struct {
	client *imapclient.Client
	conn   *imapConn
}

// commandError is the failure of a command.
type commandError struct {
	command string
	err     error
}

func (e *commandError) Error() string { return e.command + ": " + e.err.Error() }
func (e *commandError) Unwrap() error { return e.err }

const startTLS = "STARTTLS"

// ask runs a command. Its error is a *commandError, which wraps *imap.Error if the server refused the command, else the reason why
// the connection ended.
func (s *imapSession) ask(command string, run func() error) error {
	s.conn.expect()
	err := run()
	s.conn.rest()
	if err == nil {
		return nil
	}
	var refused *imap.Error
	failed := s.conn.failure()
	// The library's error is mostly that the connection is closed.
	if failed != nil && !errors.As(err, &refused) && platform.Reason(err) == platform.ReasonConnectionLost {
		err = failed
	}
	return &commandError{command: command, err: err}
}

// dial connects, up to the login. news is called when the number of messages changes.
func (m *Mailbox) dial(ctx context.Context, news func()) (*imapSession, error) {
	conn, err := m.connection(ctx)
	if err != nil {
		return nil, err
	}
	s := &imapSession{conn: newIMAPConn(conn, m.accept.MaxMessage+answerOverhead)}
	stop := context.AfterFunc(ctx, func() { s.conn.fail(ctx.Err()) })
	defer stop()
	options := &imapclient.Options{TLSConfig: m.config.TLS, UnilateralDataHandler: &imapclient.UnilateralDataHandler{
		Mailbox: func(data *imapclient.UnilateralDataMailbox) {
			if data.NumMessages != nil {
				news()
			}
		},
	}}
	if m.config.Security == StartTLS {
		return s, s.ask(startTLS, func() (err error) {
			s.client, err = imapclient.NewStartTLS(s.conn, options)
			return err
		})
	}
	s.client = imapclient.New(s.conn, options)
	if err := s.ask("greeting", s.client.WaitGreeting); err != nil {
		_ = s.client.Close()
		return nil, err
	}
	return s, nil
}

// connection returns an open connection, with TLS if it begins with it.
func (m *Mailbox) connection(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	conn, err := m.connect(ctx, "tcp", net.JoinHostPort(m.config.Host, strconv.Itoa(m.config.Port)))
	if err != nil || m.config.Security != ImplicitTLS {
		return conn, err
	}
	secure := tls.Client(conn, m.config.TLS)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secure, nil
}

// wait returns when there may be new messages. With IDLE the server reports them.
func (s *imapSession) wait(ctx context.Context, idles bool, news <-chan struct{}, poll <-chan time.Time) error {
	var idle *imapclient.IdleCommand
	if idles {
		err := s.ask("IDLE", func() (err error) {
			idle, err = s.client.Idle()
			return err
		})
		if err != nil {
			return err
		}
	}
	select {
	case <-news:
	case <-poll:
	case <-s.client.Closed(): // the next command fails
	case <-ctx.Done():
	}
	if idle == nil {
		return nil
	}
	return s.ask("end of IDLE", func() error {
		if err := idle.Close(); err != nil {
			return err
		}
		return idle.Wait()
	})
}

// imapReason describes an error in fields of a log, without a server's text, which may quote the login or a mail.
func imapReason(ctx context.Context, err error) []zap.Field {
	var command *commandError
	var refused *imap.Error
	var failed answerFault
	fields := []zap.Field{}
	if errors.As(err, &command) {
		fields = append(fields, zap.String("command", command.command))
	}
	var reason string
	switch {
	case errors.Is(err, errReceive):
		reason = err.Error()
	case errors.As(err, &refused):
		reason = "the server refused"
		if command != nil && command.command == startTLS {
			reason = reasonNoStartTLS
		}
		reason += ": " + strings.TrimSpace(adapter.Code(string(refused.Type)+" "+string(refused.Code)))
	case errors.As(err, &failed):
		reason = failed.Error()
	default:
		reason = networkReason(ctx, err)
	}
	return append(fields, zap.String("reason", reason))
}
