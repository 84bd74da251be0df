package mtls_test

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
	"github.com/turntable-streams/turntable/processors/auth/mtls"
)

var noon = time.UnixMilli(1_790_000_000_120)

func cert(name string, notAfter time.Time) *x509.Certificate {
	return &x509.Certificate{Subject: pkix.Name{CommonName: name}, NotAfter: notAfter}
}

func try(t *testing.T, chains [][]*x509.Certificate, opts ...mtls.Option) (auth.Caller, error) {
	t.Helper()
	c, err := mtls.New(append([]mtls.Option{mtls.WithClock(clock.NewFake(noon))}, opts...)...)
	require.NoError(t, err)
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.TLS = &tls.ConnectionState{VerifiedChains: chains}
	return c.Authenticate(r)
}

func TestVerifiedCertificateAuthenticatesItsUser(t *testing.T) {
	leaf := cert("mira", noon.Add(2*time.Hour))
	c, err := try(t, [][]*x509.Certificate{{leaf, cert("authority", noon.Add(time.Hour))}})
	require.NoError(t, err)
	require.Equal(t, "mira", c.UserID)
	require.Equal(t, "cert:mira", c.Name())
	require.Equal(t, noon.Add(time.Hour), c.Expires, "with the first certificate of the chain")
	require.True(t, c.Allowed("mira:1"))
	require.False(t, c.Allowed("otto:1"))
	require.False(t, c.Can(auth.Control))

	every, err := auth.ParseSessions("*")
	require.NoError(t, err)
	c, err = try(t, [][]*x509.Certificate{{leaf}}, mtls.WithSessions(every), mtls.WithRights(auth.Read))
	require.NoError(t, err)
	require.True(t, c.Allowed("otto:1"))
	require.Equal(t, auth.Read, c.Rights)
}

func TestCertificateMustNameOneUserAndBeValid(t *testing.T) {
	id, err := url.Parse("spiffe://harbor/mira")
	require.NoError(t, err)
	leaf := cert("", noon.Add(time.Hour))
	leaf.URIs, leaf.DNSNames = []*url.URL{id}, []string{"a.example", "b.example"}
	chains := [][]*x509.Certificate{{leaf}}
	c, err := try(t, chains, mtls.WithName(mtls.URI))
	require.NoError(t, err)
	require.Equal(t, "spiffe://harbor/mira", c.UserID)
	for _, name := range []mtls.Name{mtls.CommonName, mtls.DNS, mtls.Email} {
		_, err = try(t, chains, mtls.WithName(name))
		require.ErrorIs(t, err, auth.ErrRejected, name)
	}
	_, err = try(t, [][]*x509.Certificate{{cert("mira", noon)}})
	require.ErrorIs(t, err, auth.ErrRejected, "the connection has outlived its certificate")
	_, err = try(t, [][]*x509.Certificate{{cert("mi\x00ra", noon.Add(1))}})
	require.ErrorIs(t, err, auth.ErrRejected)
}

func TestCertificateThatTheServerHasNotVerifiedIsIgnored(t *testing.T) {
	c, err := mtls.New()
	require.NoError(t, err)
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.Header.Set("X-Forwarded-Client-Cert", "Subject=mira")
	for _, state := range []*tls.ConnectionState{nil, {}, {PeerCertificates: []*x509.Certificate{cert("mira", noon)}}} {
		r.TLS = state
		_, err = c.Authenticate(r)
		require.ErrorIs(t, err, auth.ErrNoCredential)
	}
	for _, opt := range []mtls.Option{mtls.WithName("o"), mtls.WithClock(nil)} {
		_, err := mtls.New(opt)
		require.ErrorIs(t, err, mtls.ErrConfig)
	}
}
