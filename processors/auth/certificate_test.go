package auth_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors/auth"
)

func newCertificate(name string, notAfter time.Time) *x509.Certificate {
	return &x509.Certificate{Subject: pkix.Name{CommonName: name}, NotAfter: notAfter}
}

func tryCertificate(t *testing.T, chains [][]*x509.Certificate, config auth.CertificateConfig) (auth.Caller, error) {
	t.Helper()
	config.Clock = clock.NewFake(noon)
	c, err := auth.NewCertificates(config)
	require.NoError(t, err)
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.TLS = &tls.ConnectionState{VerifiedChains: chains}
	return c.Authenticate(r)
}

func TestVerifiedCertificateAuthenticatesItsUser(t *testing.T) {
	leaf := newCertificate("mira", noon.Add(2*time.Hour))
	c, err := tryCertificate(t, [][]*x509.Certificate{{leaf, newCertificate("authority", noon.Add(time.Hour))}}, auth.CertificateConfig{})
	require.NoError(t, err)
	require.Equal(t, "mira", c.UserID)
	require.Equal(t, "cert:mira", c.Name())
	require.Equal(t, noon.Add(time.Hour), c.Expires, "with the first certificate of the chain")
	require.True(t, c.Allowed("mira:1"))
	require.False(t, c.Allowed("otto:1"))
	require.False(t, c.Can(auth.Control))

	every, err := auth.ParseSessions("*")
	require.NoError(t, err)
	c, err = tryCertificate(t, [][]*x509.Certificate{{leaf}}, auth.CertificateConfig{Sessions: every, Rights: auth.Read})
	require.NoError(t, err)
	require.True(t, c.Allowed("otto:1"))
	require.Equal(t, auth.Read, c.Rights)
}

func TestCertificateMustNameOneUserAndBeValid(t *testing.T) {
	id, err := url.Parse("spiffe://harbor/mira")
	require.NoError(t, err)
	leaf := newCertificate("", noon.Add(time.Hour))
	leaf.URIs, leaf.DNSNames = []*url.URL{id}, []string{"a.example", "b.example"}
	chains := [][]*x509.Certificate{{leaf}}
	c, err := tryCertificate(t, chains, auth.CertificateConfig{Name: auth.NameURI})
	require.NoError(t, err)
	require.Equal(t, "spiffe://harbor/mira", c.UserID)
	for _, name := range []auth.CertificateName{auth.NameCommon, auth.NameDNS, auth.NameEmail} {
		_, err = tryCertificate(t, chains, auth.CertificateConfig{Name: name})
		require.ErrorIs(t, err, auth.ErrRejected, name)
	}
	_, err = tryCertificate(t, [][]*x509.Certificate{{newCertificate("mira", noon)}}, auth.CertificateConfig{})
	require.ErrorIs(t, err, auth.ErrRejected, "the connection has outlived its certificate")
	_, err = tryCertificate(t, [][]*x509.Certificate{{newCertificate("mi\x00ra", noon.Add(1))}}, auth.CertificateConfig{})
	require.ErrorIs(t, err, auth.ErrRejected)
}

func TestCertificateThatTheServerHasNotVerifiedIsIgnored(t *testing.T) {
	c, err := auth.NewCertificates(auth.CertificateConfig{})
	require.NoError(t, err)
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.Header.Set("X-Forwarded-Client-Cert", "Subject=mira")
	for _, state := range []*tls.ConnectionState{nil, {}, {PeerCertificates: []*x509.Certificate{newCertificate("mira", noon)}}} {
		r.TLS = state
		_, err = c.Authenticate(r)
		require.ErrorIs(t, err, auth.ErrNoCredential)
	}
	_, err = auth.NewCertificates(auth.CertificateConfig{Name: "o"})
	require.ErrorIs(t, err, auth.ErrCertificates)
}
