//go:build kafka

package share_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/kafka"
	"github.com/turntable-streams/turntable/internal/kafka/franz"
	"github.com/turntable-streams/turntable/internal/testing/kafkatest"
)

// identities starts a token endpoint that issues unsigned tokens for the secret right, valid for a lifetime.
func identities(t *testing.T, lifetime time.Duration, issued *atomic.Int64) string {
	t.Helper()
	part := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if id, secret, _ := r.BasicAuth(); id != "turntable" || secret != "right" {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error":"invalid_client"}`)
			return
		}
		issued.Add(1)
		now := time.Now()
		token := part(`{"alg":"none"}`) + "." + part(fmt.Sprintf(`{"sub":"turntable","iat":%d,"exp":%d}`,
			now.Unix(), now.Add(lifetime).Unix())) + "."
		fmt.Fprintf(w, `{"access_token":%q,"expires_in":%d}`, token, int64(lifetime.Seconds()))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func oauthConfig(t *testing.T, endpoint, secret string) *sarama.Config {
	t.Helper()
	conf := kafka.Config()
	_, err := kafka.Apply(conf, map[string]string{
		"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER",
		"sasl.oauthbearer.token.endpoint.url":               endpoint,
		"sasl.oauthbearer.client.credentials.client.id":     "turntable",
		"sasl.oauthbearer.client.credentials.client.secret": secret,
	}, nil)
	require.NoError(t, err)
	return conf
}

// counted counts the tokens that a client takes: one per authentication.
type counted struct {
	sarama.AccessTokenProvider
	taken *atomic.Int64
}

func (c counted) Token() (*sarama.AccessToken, error) {
	c.taken.Add(1)
	return c.AccessTokenProvider.Token()
}

// The broker closes a connection that has not been authenticated again within three seconds, which would be an error of a
// request. It refuses to authenticate a connection twice within a second.
func TestClientsAuthenticateByOAuthBearerAgainAndAgain(t *testing.T) {
	cluster := kafkatest.New(t, kafkatest.Options{OAuth: true, Properties: map[string]string{
		"listener.name.oauth.oauthbearer.connections.max.reauth.ms": "3000",
	}})
	var issued, taken atomic.Int64
	endpoint := identities(t, 10*time.Second, &issued)
	again := func(request func() error) {
		var failure error
		before := taken.Load()
		require.Eventually(t, func() bool {
			failure = request()
			return failure != nil || taken.Load() >= before+3
		}, time.Minute, 20*time.Millisecond)
		require.NoError(t, failure)
	}
	conf := oauthConfig(t, endpoint, "right")
	conf.Net.SASL.TokenProvider = counted{conf.Net.SASL.TokenProvider, &taken}

	client, err := sarama.NewClient(cluster.OAuthBootstrap(), conf)
	require.NoError(t, err)
	defer client.Close()
	controller, err := client.Controller()
	require.NoError(t, err)
	again(func() error {
		_, err := controller.GetMetadata(sarama.NewMetadataRequest(conf.Version, nil))
		return err
	})

	workers, err := franz.Dial(cluster.OAuthBootstrap(), conf)
	require.NoError(t, err)
	defer workers.Close()
	again(func() error { return workers.Ping(t.Context()) })
	require.Less(t, issued.Load(), taken.Load(), "a token is used for several connections")

	wrong := oauthConfig(t, endpoint, "hunter2")
	_, err = sarama.NewClient(cluster.OAuthBootstrap(), wrong)
	require.ErrorContains(t, err, "status 401 (invalid_client)")
	require.NotContains(t, err.Error(), "hunter2")
	refused, err := franz.Dial(cluster.OAuthBootstrap(), wrong)
	require.NoError(t, err)
	defer refused.Close()
	err = refused.Ping(t.Context())
	require.ErrorContains(t, err, "status 401 (invalid_client)")
	require.NotContains(t, err.Error(), "hunter2")
}
