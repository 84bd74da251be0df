package kafka_test

import (
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/kafka"
)

const (
	endpointURL = "sasl.oauthbearer.token.endpoint.url"
	oauthLogin  = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
)

// tokenServer answers the credentials and the scope of a request as its token.
func tokenServer(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, secret, _ := r.BasicAuth()
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":"%s:%s:%s","expires_in":60}`, id, secret, r.PostFormValue("scope"))
	}))
	t.Cleanup(server.Close)
	return server
}

func TestTokensComeFromTheEndpointThatPropertiesName(t *testing.T) {
	server := tokenServer(t)
	common := map[string]string{
		"security.protocol": "SASL_SSL", endpointURL: server.URL,
		"https.ca.pem": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})),
	}
	for name, properties := range map[string]map[string]string{
		"JAAS": {"sasl.jaas.config": oauthLogin + `clientId="ann" clientSecret='pw' scope=read extension_logicalCluster="lkc-1";`},
		"Kafka 4.1 and newer": {
			"sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.client.credentials.client.id": "ann",
			"sasl.oauthbearer.client.credentials.client.secret": "pw", "sasl.oauthbearer.scope": "read",
			"sasl.jaas.config":                  oauthLogin + `clientId=x extension_logicalCluster=lkc-1;`,
			"sasl.login.callback.handler.class": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
		},
		"librdkafka": {
			"sasl.mechanisms": "oauthbearer", "sasl.oauthbearer.method": "oidc", "sasl.oauthbearer.client.id": "ann",
			"sasl.oauthbearer.client.secret": "pw", "sasl.oauthbearer.scope": "read",
			"sasl.oauthbearer.extensions": "logicalCluster=lkc-1",
		},
	} {
		maps.Copy(properties, common)
		c := kafka.Config()
		outcome, err := kafka.Apply(c, properties, nil)
		require.NoError(t, err, name)
		require.Empty(t, outcome.Ignored, name)
		require.True(t, c.Net.SASL.Enable)
		require.EqualValues(t, sarama.SASLTypeOAuth, c.Net.SASL.Mechanism)
		token, err := kafka.Copy(c).Net.SASL.TokenProvider.Token()
		require.NoError(t, err, name)
		require.Equal(t, "ann:pw:read", token.Token, name)
		require.Equal(t, map[string]string{"logicalCluster": "lkc-1"}, token.Extensions, name)
	}
}

func TestTokensComeFromAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(path, []byte("one\n"), 0o600))
	c := kafka.Config()
	_, err := kafka.Apply(c, map[string]string{
		"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER", endpointURL: "file://" + path,
	}, nil)
	require.NoError(t, err)
	require.Contains(t, kafka.CleartextWarnings(c)[0], "access token in clear text")
	require.NoError(t, os.WriteFile(path, []byte("two\n"), 0o600))
	token, err := c.Net.SASL.TokenProvider.Token()
	require.NoError(t, err)
	require.Equal(t, "two", token.Token)
}

func TestIncompleteOAuthPropertiesAreRefusedByName(t *testing.T) {
	const id, secret = "sasl.oauthbearer.client.credentials.client.id", "sasl.oauthbearer.client.credentials.client.secret"
	for want, properties := range map[string]map[string]string{
		endpointURL + ": bad value: missing":                   {id: "ann", secret: "hunter2"},
		endpointURL + ": bad value: want https":                {endpointURL: "http://idp.example/hunter2", id: "ann", secret: "hunter2"},
		endpointURL + ": bad value: the token file":            {endpointURL: "file:///nonexistent/hunter2"},
		endpointURL + ": bad value: want file":                 {endpointURL: "file://hunter2/token"},
		id + ", " + secret + ": bad value: missing":            {endpointURL: "https://idp.example/token", id: "hunter2"},
		"sasl.oauthbearer.extensions: bad value":               {endpointURL: "https://i/", id: "a", secret: "b", "sasl.oauthbearer.extensions": "auth=hunter2"},
		"sasl.login.callback.handler.class: refused":           {endpointURL: "https://i/", id: "a", secret: "b", "sasl.login.callback.handler.class": "hunter2"},
		"sasl.oauthbearer.jwt.retriever.class: refused":        {endpointURL: "https://i/", id: "a", secret: "b", "sasl.oauthbearer.jwt.retriever.class": "hunter2"},
		"sasl.oauthbearer.method: refused":                     {endpointURL: "https://i/", id: "a", secret: "b", "sasl.oauthbearer.method": "default"},
		"https.ca.pem: bad value: no PEM certificate":          {endpointURL: "https://i/", id: "a", secret: "b", "https.ca.pem": "hunter2"},
		"sasl.jaas.config: bad value: its login module is not": {"sasl.jaas.config": plain + `required username=a password=hunter2;`},
	} {
		properties["security.protocol"], properties["sasl.mechanism"] = "SASL_SSL", "OAUTHBEARER"
		_, err := kafka.Apply(kafka.Config(), properties, nil)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "hunter2")
	}
	err := kafka.SetSASL(kafka.Config(), "OAUTHBEARER", "ann", "hunter2")
	require.ErrorIs(t, err, kafka.ErrRefused)
	require.ErrorContains(t, err, endpointURL)
}

func TestOAuthPropertiesHaveNoEffectOnOtherMechanisms(t *testing.T) {
	outcome, err := kafka.Apply(kafka.Config(), map[string]string{
		"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "ann", "sasl.password": "b",
		endpointURL: "https://i/", "https.ca.pem": "x",
	}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"https.ca.pem", endpointURL}, outcome.Ignored)
}
