package email

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/wneessen/go-mail"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/loopback"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/text"
)

// Security is how the connection to a mail server is encrypted.
type Security int

// The kinds of security. The zero value is STARTTLS.
const (
	// StartTLS requires STARTTLS before anything is sent (RFC 3207).
	StartTLS Security = iota
	// ImplicitTLS is TLS from the first byte (RFC 8314).
	ImplicitTLS
	// NoTLS is for a mail server on this machine and for tests: the host must be a loopback address or localhost, and there is
	// no login.
	NoTLS
)

// Config is the configuration of an Adapter.
type Config struct {
	// From is the address of the account, from which answers are sent. It is one of Acceptance.Addresses. FromName is the name
	// with it; if it is empty, the name of the agent is used.
	From, FromName string
	// Host and Port are those of the submission server. Port 0 means 587, or 465 for ImplicitTLS.
	Host     string
	Port     int
	Security Security
	// TLS is used for connections; nil means the defaults for Host. It is cloned.
	TLS *tls.Config
	// Username and Password are those of the login (RFC 4954). Empty: no login.
	Username, Password string
	// Timeout is how long an attempt may take (default 1 min).
	Timeout time.Duration
	// Clock is for the header Date (default: the system's).
	Clock processors.Clock
}

// Adapter sends answers as mail, with a connection for each. It implements adapter.Adapter and is safe for concurrent use.
type Adapter struct {
	config Config
	from   string
}

// New returns an adapter. It opens no connection. The error wraps ErrConfig and does not quote the password.
func New(c Config) (*Adapter, error) {
	var check bounds.Check
	from, ok := parseAddress(c.From)
	if !ok {
		check.Wrong("From", "is %q, want an address", c.From)
	}
	checkServer(&check, c.Host, &c.Port, c.Security, 587, 465, c.Username, c.Password)
	if c.Security == NoTLS && c.Username != "" {
		check.Wrong("Username", "needs TLS")
	}
	bounds.AtLeast(&check, "Timeout", &c.Timeout, time.Minute, 1)
	if c.Clock == nil {
		c.Clock = clock.System()
	}
	c.TLS = clientTLS(c.TLS, c.Host)
	if err := check.Err(ErrConfig); err != nil {
		return nil, err
	}
	return &Adapter{config: c, from: from}, nil
}

// checkServer checks what the configurations of both kinds of mail servers have in common. The ports are the defaults.
func checkServer(check *bounds.Check, host string, port *int, s Security, startTLS, implicitTLS int, name, password string) {
	if host == "" || strings.ContainsAny(host, "/ \r\n") {
		check.Wrong("Host", "is %q", host)
	}
	if s == ImplicitTLS {
		startTLS = implicitTLS
	}
	bounds.Between(check, "Port", port, startTLS, 1, 65535)
	if s != StartTLS && s != ImplicitTLS && s != NoTLS {
		check.Wrong("Security", "is %d, want StartTLS, ImplicitTLS or NoTLS", s)
	}
	if s == NoTLS && !loopback.Is(host) {
		check.Wrong("Security", "is NoTLS, which is for loopback addresses only")
	}
	if (name == "") != (password == "") {
		check.Wrong("Username", "and Password need each other")
	}
}

func clientTLS(c *tls.Config, host string) *tls.Config {
	if c == nil {
		c = &tls.Config{}
	}
	c = c.Clone()
	if c.ServerName == "" {
		c.ServerName = host
	}
	c.MinVersion = max(c.MinVersion, tls.VersionTLS12)
	return c
}

// Channel implements adapter.Adapter.
func (*Adapter) Channel() string { return Channel }

// Traits implements adapter.Adapter. A mail has no limit, so an answer is one mail.
func (*Adapter) Traits() adapter.Traits { return adapter.Traits{Format: text.Markdown, Threads: true} }

// Send implements adapter.Adapter. The ID that it returns is the Message-ID of the mail.
func (a *Adapter) Send(ctx context.Context, c adapter.Chunk) (adapter.Sent, error) {
	m, id, failure := a.compose(c)
	if failure != nil {
		return adapter.Sent{}, failure
	}
	ctx, cancel := context.WithTimeout(ctx, a.config.Timeout)
	defer cancel()
	client, dialed, err := a.client(ctx)
	if err != nil {
		return adapter.Sent{}, &adapter.Failure{Reason: "configuration cannot be used"}
	}
	defer dialed.close() // go-mail leaves it open after an error
	connection, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return adapter.Sent{}, connecting(ctx, err)
	}
	err = client.SendWithSMTPClient(connection, m)
	// After the reply to the end of the mail it is sent, whatever happens to the connection then.
	if err != nil && !m.IsDelivered() {
		return adapter.Sent{}, sending(ctx, err)
	}
	_ = client.CloseWithSMTPClient(connection)
	return adapter.Sent{ID: id}, nil
}

// dialed is the connection of an attempt.
type dialed struct {
	conn net.Conn
	stop func() bool
}

func (d *dialed) close() {
	if d.conn != nil {
		d.stop()
		_ = d.conn.Close()
	}
}

// client returns a client whose connection ends with ctx.
func (a *Adapter) client(ctx context.Context) (*mail.Client, *dialed, error) {
	d := &dialed{}
	options := []mail.Option{
		mail.WithPort(a.config.Port), mail.WithTimeout(a.config.Timeout), mail.WithHELO(domainOf(a.from)), mail.WithoutNoop(),
		mail.WithTLSConfig(a.config.TLS), mail.WithTLSPolicy(mail.TLSMandatory),
	}
	switch a.config.Security {
	case ImplicitTLS:
		options = append(options, mail.WithSSL())
	case NoTLS:
		options = append(options, mail.WithTLSPolicy(mail.NoTLS))
	}
	if a.config.Username != "" {
		options = append(options, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover),
			mail.WithUsername(a.config.Username), mail.WithPassword(a.config.Password))
	}
	options = append(options, mail.WithDialContextFunc(func(ctxDial context.Context, network, _ string) (net.Conn, error) {
		address := net.JoinHostPort(a.config.Host, strconv.Itoa(a.config.Port))
		conn, err := (&net.Dialer{}).DialContext(ctxDial, network, address)
		if err != nil {
			return nil, err
		}
		d.conn, d.stop = conn, context.AfterFunc(ctx, func() { _ = conn.Close() })
		if a.config.Security != ImplicitTLS {
			return conn, nil
		}
		secure := tls.Client(conn, a.config.TLS)
		return secure, secure.HandshakeContext(ctxDial)
	}))
	client, err := mail.NewClient(a.config.Host, options...)
	return client, d, err
}

// compose returns the mail and its Message-ID. It fails for an origin that is not one of this package.
func (a *Adapter) compose(c adapter.Chunk) (*mail.Msg, string, *adapter.Failure) {
	to, ok := parseAddress(c.To.Recipient)
	if !ok {
		return nil, "", &adapter.Failure{Reason: "recipient is not an address", Final: true}
	}
	var t thread
	if c.To.Adapter != nil {
		if err := json.Unmarshal(c.To.Adapter, &t); err != nil {
			return nil, "", &adapter.Failure{Reason: "origin cannot be read", Final: true}
		}
	}
	id := answerID(c.Key, a.from)
	name := cmp.Or(oneLine(a.config.FromName, maxName), oneLine(c.SenderName, maxName))
	m := mail.NewMsg(mail.WithNoDefaultUserAgent())
	if m.FromFormat(name, a.from) != nil || m.To(to) != nil || m.EnvelopeFrom(a.from) != nil {
		return nil, "", &adapter.Failure{Reason: "address is refused", Final: true}
	}
	m.Subject(answerSubject(t.Subject))
	m.SetDateWithValue(a.config.Clock.Now())
	m.SetMessageIDWithValue(strings.Trim(id, "<>"))
	if isMessageID(c.To.MessageID) {
		m.SetGenHeaderPreformatted(mail.HeaderInReplyTo, c.To.MessageID)
	}
	if refs := chain(t.References, c.To.MessageID); len(refs) > 0 {
		m.SetGenHeaderPreformatted(mail.HeaderReferences, strings.Join(refs, "\r\n "))
	}
	m.SetGenHeaderPreformatted("Auto-Submitted", "auto-replied")
	m.SetGenHeaderPreformatted("X-Auto-Response-Suppress", "All")
	m.SetGenHeaderPreformatted(headerLoop, a.from)
	m.SetBodyString(mail.TypeTextPlain, strings.ReplaceAll(c.Text, "\r\n", "\n"))
	return m, id, nil
}

// answerSubject returns a subject with "Re: " before it once.
func answerSubject(s string) string {
	s = oneLine(s, maxSubject)
	for len(s) >= 3 && strings.EqualFold(s[:3], "re:") {
		s = strings.TrimSpace(s[3:])
	}
	return strings.TrimSpace("Re: " + s)
}

// Check implements adapter.Checker: it connects to the submission server and logs in.
func (a *Adapter) Check(ctx context.Context) error {
	client, dialed, err := a.client(ctx)
	if err != nil {
		return &adapter.Failure{Reason: "configuration cannot be used"}
	}
	defer dialed.close()
	connection, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		f := connecting(ctx, err)
		if f.Final = f.Status/100 == 5; !f.Final { // 4xx is transient: https://www.rfc-editor.org/rfc/rfc5321#section-4.2.1
			f.Status = 0
		}
		return f
	}
	_ = client.CloseWithSMTPClient(connection)
	return nil
}
