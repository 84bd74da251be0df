package email

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
)

// ServerConfig is the configuration of a Server. Zero limits mean the defaults.
type ServerConfig struct {
	Acceptance
	// Domain is the name with which the server greets. It is required.
	Domain string
	// TLS offers STARTTLS (RFC 3207), or with ImplicitTLS requires TLS from the first byte (RFC 8314). Nil offers none. With
	// RequireTLS, mail is refused without TLS.
	TLS                     *tls.Config
	ImplicitTLS, RequireTLS bool
	// Authenticate, if it is set, must allow the name and the password of every client (RFC 4954, mechanism PLAIN, over TLS only).
	// It is called concurrently. Clients of an address that failed too often get 454 instead, unless their login has worked before.
	Authenticate func(name, password string) bool
	// MaxRecipients is the maximum of recipients of a mail (default 10).
	MaxRecipients int
	// MaxConnections and MaxPerAddress limit open connections, in all (default 100) and of one IP address (default 20). Over
	// MaxPerAddress, a new one gets reply 421. Over MaxConnections, the one that has brought no mail for the longest gets it. A
	// connection that brings no mail for 5 minutes, or in 100 reads, gets it too.
	MaxConnections, MaxPerAddress int
	// MaxBuffered limits the bytes of the mails that arrive or are being received, together (default 8 times MaxMessage, at least
	// MaxMessage). Clients of others are told to try again.
	MaxBuffered int64
	// Timeout is how long a command, or all of a mail, may take to arrive, and a reply to be written (default 2 min).
	Timeout time.Duration
	// ReceiveTimeout is how long the Receiver may take (default 1 min). Then the client is told to try again.
	ReceiveTimeout time.Duration
	// Logger logs what was dropped and refused, without addresses and texts (default: none).
	Logger *zap.Logger
}

// Server takes mail by SMTP for the addresses of an account and passes it to a Receiver. A mail is taken, with reply 250, when
// Receive has returned nil; after an error the client gets 451 and sends it again. It relays nothing.
type Server struct {
	config ServerConfig
	accept *acceptance
	to     adapter.Receiver
	room   *semaphore.Weighted // of MaxBuffered bytes
	begun  atomic.Bool
	logins *entrance.Failures
}

// rememberedLogins is for how many addresses and accounts failed logins are remembered.
const rememberedLogins = 10_000

// NewServer returns a server. It logs a warning if senders are not authenticated. The error wraps ErrConfig.
func NewServer(c ServerConfig, r adapter.Receiver) (*Server, error) {
	var check bounds.Check
	accept := c.Acceptance.check(&check)
	if r == nil {
		check.Wrong("Receiver", "is nil")
	}
	if !isDomain(c.Domain) {
		check.Wrong("Domain", "is not a host name")
	}
	if c.TLS == nil && (c.RequireTLS || c.ImplicitTLS || c.Authenticate != nil) {
		check.Wrong("TLS", "is nil, but RequireTLS, ImplicitTLS and Authenticate need it")
	}
	bounds.AtLeast(&check, "MaxRecipients", &c.MaxRecipients, 10, 1)
	bounds.AtLeast(&check, "MaxConnections", &c.MaxConnections, 100, 1)
	bounds.AtLeast(&check, "MaxPerAddress", &c.MaxPerAddress, 20, 1)
	bounds.AtLeast(&check, "MaxBuffered", &c.MaxBuffered, 8*accept.MaxMessage, accept.MaxMessage)
	bounds.AtLeast(&check, "Timeout", &c.Timeout, 2*time.Minute, 1)
	bounds.AtLeast(&check, "ReceiveTimeout", &c.ReceiveTimeout, time.Minute, 1)
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	if err := check.Err(ErrConfig); err != nil {
		return nil, err
	}
	accept.warn(c.Logger)
	return &Server{config: c, accept: accept, to: inOrder(r), room: semaphore.NewWeighted(c.MaxBuffered), logins: entrance.NewFailures(rememberedLogins)}, nil
}

// Serve accepts connections until ctx ends or the listener fails. Then it closes the listener and all connections, cancels what
// is being received, and returns when their goroutines have ended: nil after the end of ctx. It may be called once.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if !s.begun.CompareAndSwap(false, true) {
		_ = l.Close()
		return fmt.Errorf("%w: Serve may be called only once", ErrConfig)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		return &session{server: s, ctx: ctx, conn: c, bounded: boundedOf(c.Conn())}, nil
	}))
	server.Domain, server.TLSConfig = s.config.Domain, s.config.TLS
	server.MaxMessageBytes, server.MaxRecipients = s.accept.MaxMessage, s.config.MaxRecipients
	server.ReadTimeout, server.WriteTimeout = s.config.Timeout, s.config.Timeout
	server.ErrorLog = logger{s.config.Logger}
	bounded := newBoundedListener(l, s.config.MaxConnections, s.config.MaxPerAddress)
	var listener net.Listener = bounded
	if s.config.ImplicitTLS {
		listener = tls.NewListener(bounded, s.config.TLS)
	}
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	err := server.Serve(listener)
	if ctx.Err() != nil {
		err = nil
	}
	stop()
	cancel()
	_ = l.Close() // an error means that it is closed
	bounded.closeAll()
	_ = server.Shutdown(context.Background()) // waits for the connections' goroutines, which closeAll has ended
	if err != nil {
		return fmt.Errorf("email: the SMTP server of account %s stopped: %w", s.config.Account, err)
	}
	return nil
}

// logger passes on that go-smtp reports something. Its texts may quote what a client sent.
type logger struct{ to *zap.Logger }

func (l logger) Printf(string, ...any) { l.to.Debug("an SMTP connection failed") }
func (l logger) Println(...any)        { l.to.Debug("an SMTP connection failed") }

// session is one connection. go-smtp uses it from one goroutine at a time.
type session struct {
	server        *Server
	ctx           context.Context
	conn          *smtp.Conn
	bounded       *boundedConn
	authenticated bool
	bounce        bool
}

func reply(code int, enhanced smtp.EnhancedCode, text string) error {
	return &smtp.SMTPError{Code: code, EnhancedCode: enhanced, Message: text}
}

// AuthMechanisms implements smtp.AuthSession.
func (s *session) AuthMechanisms() []string {
	if s.server.config.Authenticate == nil {
		return nil
	}
	return []string{sasl.Plain}
}

// Auth implements smtp.AuthSession.
func (s *session) Auth(mechanism string) (sasl.Server, error) {
	if s.server.config.Authenticate == nil || mechanism != sasl.Plain {
		return nil, smtp.ErrAuthUnknownMechanism
	}
	return sasl.NewPlainServer(func(identity, name, password string) error {
		address := entrance.Address(s.conn.Conn().RemoteAddr().String())
		ok, wait := s.server.logins.Try(address, name, password, time.Now(), func() bool {
			return (identity == "" || identity == name) && s.server.config.Authenticate(name, password)
		})
		switch {
		case wait > 0:
			return reply(454, smtp.EnhancedCode{4, 7, 0}, "Too many failed logins, try again later")
		case !ok:
			return smtp.ErrAuthFailed
		}
		s.authenticated = true
		return nil
	}), nil
}

// Mail implements smtp.Session.
func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	if _, secure := s.conn.TLSConnectionState(); s.server.config.RequireTLS && !secure {
		return reply(530, smtp.EnhancedCode{5, 7, 0}, "Must issue a STARTTLS command first")
	}
	if s.server.config.Authenticate != nil && !s.authenticated {
		return reply(530, smtp.EnhancedCode{5, 7, 0}, "Authentication required")
	}
	s.bounce = from == ""
	return nil
}

// Rcpt implements smtp.Session.
func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	if address, ok := parseAddress(to); !ok || !s.server.accept.isOwnAddress(address) {
		return reply(550, smtp.EnhancedCode{5, 1, 1}, "No such mailbox")
	}
	return nil
}

// Data implements smtp.Session.
func (s *session) Data(r io.Reader) (err error) {
	s.bounded.begin(s.server.config.Timeout)
	defer func() { s.bounded.finish(err == nil) }()
	limit := s.server.accept.MaxMessage
	counted := &countedReader{from: io.LimitReader(r, limit+1), room: s.server.room}
	defer counted.free()
	raw, err := io.ReadAll(counted)
	if errors.Is(err, smtp.ErrDataTooLarge) || int64(len(raw)) > limit {
		return smtp.ErrDataTooLarge
	}
	if errors.Is(err, errNoRoom) {
		return reply(451, smtp.EnhancedCode{4, 3, 1}, "Too much mail at the moment")
	}
	if errors.Is(err, smtp.ErrTooLongLine) {
		return reply(554, smtp.EnhancedCode{5, 6, 0}, "A line is too long")
	}
	if err != nil { // the connection was lost before the end of the mail
		return reply(451, smtp.EnhancedCode{4, 4, 2}, "The message did not arrive")
	}
	if s.bounce {
		s.server.log("mail was dropped", "it has no sender")
		return nil
	}
	s.bounded.enter(received)
	v := s.server.accept.judge(raw)
	switch {
	case v.dropped != "":
		s.server.log("mail was dropped", v.dropped)
		return nil
	case v.tooLarge:
		s.server.log("mail was refused", v.refused)
		return smtp.ErrDataTooLarge
	case v.refused != "":
		s.server.log("mail was refused", v.refused)
		return reply(550, smtp.EnhancedCode{5, 7, 1}, "Not accepted: "+v.refused)
	}
	ctx, cancel := context.WithTimeout(s.ctx, s.server.config.ReceiveTimeout)
	defer cancel()
	if err := s.server.to.Receive(ctx, v.in); err != nil {
		s.server.config.Logger.Warn("mail was not received; the client is told to send it again",
			zap.String("account", s.server.config.Account), zap.String("event", v.in.Event), zap.Error(err))
		return reply(451, smtp.EnhancedCode{4, 3, 0}, "Try again later")
	}
	return nil
}

var errNoRoom = errors.New("email: too many bytes of mails are in memory")

// countedReader takes room for what it reads, until free.
type countedReader struct {
	from  io.Reader
	room  *semaphore.Weighted
	taken int64
}

func (c *countedReader) Read(b []byte) (int, error) {
	n, err := c.from.Read(b)
	if !c.room.TryAcquire(int64(n)) {
		return 0, errNoRoom
	}
	c.taken += int64(n)
	return n, err
}

func (c *countedReader) free() { c.room.Release(c.taken) }

// Reset implements smtp.Session.
func (s *session) Reset() { s.bounce = false }

// Logout implements smtp.Session.
func (s *session) Logout() error { return nil }

func (s *Server) log(text, reason string) {
	s.config.Logger.Info(text, zap.String("account", s.config.Account), zap.String("reason", strings.TrimSpace(reason)))
}
