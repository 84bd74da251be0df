package teams_test

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	gojwt "github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform/platformtest"
	"github.com/turntable-streams/turntable/processors/channel/teams"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const (
	appID  = "app-1"
	secret = "s3cret"
)

var signingKeys = sync.OnceValue(func() [2]*rsa.PrivateKey {
	var keys [2]*rsa.PrivateKey
	for i := range keys {
		k, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			panic(err)
		}
		keys[i] = k
	}
	return keys
})

// platform is a loopback Bot Framework: its metadata, keys, token endpoint and connector.
type platform struct {
	url      string
	kid      string // the ID of the published key
	endorsed string // the channel for which the key is endorsed
	jwksURI  string
	down     bool // the metadata is not served
	fetched  int  // how often the keys were read
	issued   int  // how many tokens were issued
	paths    []string
	bodies   []string
	answer   func(w http.ResponseWriter, n int)
}

func newPlatform(t *testing.T) *platform {
	t.Helper()
	p := &platform{kid: "key-0", endorsed: "msteams"}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metadata", func(w http.ResponseWriter, _ *http.Request) {
		if p.down {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprintf(w, `{"issuer":"https://api.botframework.com","jwks_uri":%q,"id_token_signing_alg_values_supported":["RS256"]}`, p.jwksURI)
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		p.fetched++
		encode := base64.RawURLEncoding.EncodeToString
		public := signingKeys()[0].PublicKey
		_, _ = fmt.Fprintf(w, `{"keys":[{"kty":"RSA","use":"sig","kid":%q,"x5t":"x","n":%q,"e":%q,"endorsements":[%q,"webchat"]}]}`,
			p.kid, encode(public.N.Bytes()), encode(big.NewInt(int64(public.E)).Bytes()), p.endorsed)
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.ParseForm() != nil || r.PostForm.Get("grant_type") != "client_credentials" || r.PostForm.Get("client_id") != appID ||
			r.PostForm.Get("client_secret") != secret || r.PostForm.Get("scope") != "https://api.botframework.com/.default" {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":"invalid_client","error_description":"s3cret"}`)
			return
		}
		p.issued++
		_, _ = fmt.Fprintf(w, `{"token_type":"Bearer","expires_in":86399,"access_token":"token-%d"}`, p.issued)
	})
	mux.HandleFunc("POST /emea/v3/conversations/", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Header.Get("Authorization") != fmt.Sprintf("Bearer token-%d", p.issued) || r.Header.Get("Content-Type") != "application/json" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		p.paths, p.bodies = append(p.paths, r.URL.EscapedPath()), append(p.bodies, string(body))
		if p.answer != nil {
			p.answer(w, len(p.paths))
			return
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, `{"id":"sent-%d"}`, len(p.paths))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	p.url, p.jwksURI = server.URL, server.URL+"/keys"
	return p
}

func (p *platform) config() teams.Config {
	return teams.Config{
		Account: "main", AppID: appID, Secret: secret, ServiceURLs: []string{p.url}, MetadataURL: p.url + "/metadata",
		TokenURL: p.url + "/token", Clock: clock.NewFake(start),
	}
}

func open(t *testing.T, c teams.Config) *teams.Adapter { return platformtest.Open(t, teams.New, c) }

func (p *platform) service() string { return p.url + "/emea/" }

// claims are those of a valid token.
func (p *platform) claims() gojwt.MapClaims {
	return gojwt.MapClaims{
		"iss": "https://api.botframework.com", "aud": appID, "serviceurl": p.service(),
		"nbf": start.Add(-time.Minute).Unix(), "exp": start.Add(time.Hour).Unix(),
	}
}

func sign(t *testing.T, key int, kid string, c gojwt.MapClaims) string {
	t.Helper()
	token := gojwt.NewWithClaims(gojwt.SigningMethodRS256, c)
	token.Header["kid"] = kid
	text, err := token.SignedString(signingKeys()[key])
	require.NoError(t, err)
	return text
}

// twice is a valid token but for a claim that it has twice.
func (p *platform) twice(t *testing.T) string {
	t.Helper()
	valid := strings.Split(sign(t, 0, "key-0", p.claims()), ".")
	claims, err := base64.RawURLEncoding.DecodeString(valid[1])
	require.NoError(t, err)
	text := valid[0] + "." + base64.RawURLEncoding.EncodeToString(append([]byte(`{"serviceurl":"https://x.example",`), claims[1:]...))
	signature, err := gojwt.SigningMethodRS256.Sign(text, signingKeys()[0])
	require.NoError(t, err)
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// request is an activity with a valid token.
func (p *platform) request(t *testing.T, body string) *http.Request {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/api/messages", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	r.Header.Set("Authorization", "Bearer "+sign(t, 0, "key-0", p.claims()))
	return r
}

// activity is an activity of a channel of a team, with further members, which replace none.
func (p *platform) activity(members string) string {
	return `{"id":"1700","timestamp":"2026-01-02T03:04:00.5Z","serviceUrl":"` + p.service() + `","channelId":"msteams",
		"from":{"id":"29:u","name":"Ann\nB","aadObjectId":"aad-1"},"recipient":{"id":"28:bot","name":"Bot"},
		"channelData":{"team":{"id":"team-1"},"tenant":{"id":"tenant-1"},"x":1},` + members + `}`
}

const inChannel = `"conversation":{"isGroup":true,"conversationType":"channel","id":"19:abc@thread.tacv2;messageid=1699","tenantId":"tenant-1"}`

func serve(a *teams.Adapter, to adapter.Receiver, r *http.Request) *httptest.ResponseRecorder {
	return platformtest.Serve(a.Handler(to), r)
}
