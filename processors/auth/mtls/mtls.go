// Package mtls authenticates callers by the client certificates of their TLS connections. Certificates.Authenticate is an
// auth.Authenticate for all doors.
//
// The http.Server must verify client certificates: its tls.Config has ClientCAs, and ClientAuth is
// tls.RequireAndVerifyClientCert, or tls.VerifyClientCertIfGiven if other credentials are accepted too. Package
// processors/auth/servertls makes such a configuration. A certificate that the server has not verified is ignored.
//
// Revocation lists are not read. Use certificates that are valid for hours or days: a stream or a socket ends when the
// certificate of its caller, or of an authority in its chain, expires.
//
// A proxy that terminates TLS hides the certificate. The headers in which some proxies repeat it are not read, because any
// client can send them.
package mtls

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors/auth"
)

// ErrConfig is wrapped by the errors of New.
var ErrConfig = errors.New("mtls: bad configuration")

// Name is the part of a certificate that names the user.
type Name string

// The names. A subject alternative name must occur exactly once in a certificate, so that it cannot be ambiguous.
const (
	CommonName Name = "cn"    // the common name of the subject
	URI        Name = "uri"   // the URI, for example a SPIFFE ID
	DNS        Name = "dns"   // the DNS name
	Email      Name = "email" // the email address
)

// Option configures New.
type Option func(*options)

type options struct {
	name     Name
	sessions auth.Sessions
	rights   auth.Rights
	clock    auth.Clock
}

// WithName sets which part of the certificate names the user (default CommonName).
func WithName(n Name) Option { return func(o *options) { o.name = n } }

// WithSessions sets the sessions of callers (default: those that match {user}:*).
func WithSessions(s auth.Sessions) Option { return func(o *options) { o.sessions = s } }

// WithRights sets the rights of callers (default: all but auth.Control). Zero means all rights.
func WithRights(r auth.Rights) Option { return func(o *options) { o.rights = r } }

// WithClock sets the clock by which certificates expire (default: the system clock). It must not be nil.
func WithClock(c auth.Clock) Option { return func(o *options) { o.clock = c } }

// Certificates authenticates callers by client certificates. It is safe for concurrent use.
type Certificates struct{ options options }

// New returns the authentication by client certificates. Its error wraps ErrConfig.
func New(opts ...Option) (*Certificates, error) {
	own, _ := auth.ParseSessions("{user}:*")
	o := options{name: CommonName, sessions: own, rights: auth.Read | auth.Write | auth.Answer, clock: clock.System()}
	for _, opt := range opts {
		opt(&o)
	}
	switch o.name {
	case CommonName, URI, DNS, Email:
	default:
		return nil, fmt.Errorf("%w: WithName: want cn, uri, dns or email", ErrConfig)
	}
	if o.clock == nil {
		return nil, fmt.Errorf("%w: WithClock: nil", ErrConfig)
	}
	return &Certificates{o}, nil
}

var _ auth.Authenticate = (*Certificates)(nil).Authenticate

// Authenticate returns the caller of a request with a client certificate. It is an auth.Authenticate. Its error wraps
// auth.ErrNoCredential if the connection has no certificate that the server has verified, and auth.ErrRejected if the
// certificate has expired or does not name one user.
func (c *Certificates) Authenticate(r *http.Request) (auth.Caller, error) {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 || len(r.TLS.VerifiedChains[0]) == 0 {
		return auth.Caller{}, fmt.Errorf("mtls: %w", auth.ErrNoCredential)
	}
	leaf := r.TLS.VerifiedChains[0][0]
	user, ok := c.options.name.of(leaf)
	expires := expiry(r.TLS.VerifiedChains)
	switch {
	case !ok:
		return auth.Caller{}, fmt.Errorf("mtls: %w: the certificate does not have one usable %s", auth.ErrRejected, c.options.name)
	case !c.options.clock.Now().Before(expires):
		return auth.Caller{}, fmt.Errorf("mtls: %w: the certificate has expired", auth.ErrRejected)
	}
	return auth.Caller{
		UserID: user, Subject: "cert:" + user, MayUse: c.options.sessions.For(user), Rights: c.options.rights, Expires: expires,
	}, nil
}

// of returns the user that a certificate names.
func (n Name) of(cert *x509.Certificate) (user string, ok bool) {
	var names []string
	switch n {
	case CommonName:
		names = []string{cert.Subject.CommonName}
	case URI:
		for _, u := range cert.URIs {
			names = append(names, u.String())
		}
	case DNS:
		names = cert.DNSNames
	case Email:
		names = cert.EmailAddresses
	}
	if len(names) != 1 {
		return "", false
	}
	user = names[0]
	return user, strings.TrimSpace(user) != "" && len(user) <= 256 &&
		!strings.ContainsFunc(user, func(r rune) bool { return !unicode.IsPrint(r) })
}

// expiry is when the last of the chains becomes invalid: a chain does so with the first of its certificates.
func expiry(chains [][]*x509.Certificate) (last time.Time) {
	for _, chain := range chains {
		end := chain[0].NotAfter
		for _, cert := range chain {
			if cert.NotAfter.Before(end) {
				end = cert.NotAfter
			}
		}
		if end.After(last) {
			last = end
		}
	}
	return last
}
