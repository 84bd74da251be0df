package auth

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/turntable-streams/turntable/internal/clock"
)

// ErrCertificates is wrapped by the errors of NewCertificates.
var ErrCertificates = errors.New("mtls: bad configuration")

// CertificateName is the part of a certificate that names the user.
type CertificateName string

// The names. A subject alternative name must occur exactly once in a certificate, so that it cannot be ambiguous.
const (
	NameCommon CertificateName = "cn"    // the common name of the subject
	NameURI    CertificateName = "uri"   // the URI, for example a SPIFFE ID
	NameDNS    CertificateName = "dns"   // the DNS name
	NameEmail  CertificateName = "email" // the email address
)

// CertificateConfig configures NewCertificates. The zero value is ready for use.
type CertificateConfig struct {
	// Name is the part of the certificate that names the user. The default is NameCommon.
	Name CertificateName
	// Sessions are the sessions of callers. The default are those that match {user}:*.
	Sessions Sessions
	// Rights are the rights of callers. The default are all but Control.
	Rights Rights
	// Clock is the clock by which certificates expire. The default is the system clock.
	Clock Clock
}

// Certificates authenticates callers by the client certificates of their TLS connections. It is safe for concurrent use.
//
// The http.Server must verify client certificates: its tls.Config has ClientCAs, and ClientAuth is
// tls.RequireAndVerifyClientCert, or tls.VerifyClientCertIfGiven if other credentials are accepted too. ServerTLS
// makes such a configuration. A certificate that the server has not verified is ignored.
//
// Revocation lists are not read. Use certificates that are valid for hours or days: a stream or a socket ends when the
// certificate of its caller, or of an authority in its chain, expires.
//
// A proxy that terminates TLS hides the certificate. The headers in which some proxies repeat it are not read, because any
// client can send them.
type Certificates struct{ config CertificateConfig }

// NewCertificates returns the authentication by client certificates. Its error wraps ErrCertificates.
func NewCertificates(c CertificateConfig) (*Certificates, error) {
	switch c.Name {
	case "":
		c.Name = NameCommon
	case NameCommon, NameURI, NameDNS, NameEmail:
	default:
		return nil, fmt.Errorf("%w: Name: want cn, uri, dns or email", ErrCertificates)
	}
	if c.Sessions.IsZero() {
		c.Sessions, _ = ParseSessions("{user}:*") // valid
	}
	if c.Rights == 0 {
		c.Rights = Read | Write | Answer
	}
	if c.Clock == nil {
		c.Clock = clock.System()
	}
	return &Certificates{c}, nil
}

var _ Authenticate = (*Certificates)(nil).Authenticate

// Authenticate returns the caller of a request with a client certificate. It is an Authenticate. Its error wraps
// ErrNoCredential if the connection has no certificate that the server has verified, and ErrRejected if the
// certificate has expired or does not name one user.
func (c *Certificates) Authenticate(r *http.Request) (Caller, error) {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 || len(r.TLS.VerifiedChains[0]) == 0 {
		return Caller{}, fmt.Errorf("mtls: %w", ErrNoCredential)
	}
	leaf := r.TLS.VerifiedChains[0][0]
	user, ok := c.config.Name.of(leaf)
	expires := chainsExpiry(r.TLS.VerifiedChains)
	switch {
	case !ok:
		return Caller{}, fmt.Errorf("mtls: %w: the certificate does not have one usable %s", ErrRejected, c.config.Name)
	case !c.config.Clock.Now().Before(expires):
		return Caller{}, fmt.Errorf("mtls: %w: the certificate has expired", ErrRejected)
	}
	return Caller{
		UserID: user, Subject: "cert:" + user, MayUse: c.config.Sessions.For(user), Rights: c.config.Rights, Expires: expires,
	}, nil
}

// of returns the user that a certificate names.
func (n CertificateName) of(cert *x509.Certificate) (user string, ok bool) {
	var names []string
	switch n {
	case NameCommon:
		names = []string{cert.Subject.CommonName}
	case NameURI:
		for _, u := range cert.URIs {
			names = append(names, u.String())
		}
	case NameDNS:
		names = cert.DNSNames
	case NameEmail:
		names = cert.EmailAddresses
	}
	if len(names) != 1 {
		return "", false
	}
	user = names[0]
	return user, strings.TrimSpace(user) != "" && len(user) <= 256 &&
		!strings.ContainsFunc(user, func(r rune) bool { return !unicode.IsPrint(r) })
}

// chainsExpiry is when the last of the chains becomes invalid: a chain does so with the first of its certificates.
func chainsExpiry(chains [][]*x509.Certificate) (last time.Time) {
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
