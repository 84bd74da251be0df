package kafka

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/IBM/sarama"
)

const (
	tokenEndpoint = "sasl.oauthbearer.token.endpoint.url"
	clientID      = "sasl.oauthbearer.client.credentials.client.id"
	clientSecret  = "sasl.oauthbearer.client.credentials.client.secret"
	extensions    = "sasl.oauthbearer.extensions"
	loginHandler  = "sasl.login.callback.handler.class"
	jwtRetriever  = "sasl.oauthbearer.jwt.retriever.class"
	oauthMethod   = "sasl.oauthbearer.method"
	httpsCAFile   = "https.ca.location"
	httpsCAPEM    = "https.ca.pem"
)

// oauthProperties are the properties of SASL OAUTHBEARER. Those that a JAAS configuration has too take precedence over it,
// as in Java.
type oauthProperties struct {
	endpoint   string
	id, secret string
	scope      string
	extensions string
	encode     bool
	handler    string
	retriever  string
	method     string
}

func oauth() map[string]setter {
	id := text(func(p *pass) *string { return &p.oauth.id })
	secret := text(func(p *pass) *string { return &p.oauth.secret })
	roots := func(t *tlsProperties) *[]byte { return &t.tokenRoots }
	return map[string]setter{
		tokenEndpoint:                    text(func(p *pass) *string { return &p.oauth.endpoint }),
		clientID:                         id,
		"sasl.oauthbearer.client.id":     id, // librdkafka
		clientSecret:                     secret,
		"sasl.oauthbearer.client.secret": secret, // librdkafka
		"sasl.oauthbearer.scope":         text(func(p *pass) *string { return &p.oauth.scope }),
		extensions:                       text(func(p *pass) *string { return &p.oauth.extensions }),
		"sasl.oauthbearer.header.urlencode": boolean(func(p *pass, on bool) {
			p.oauth.encode = on
		}),
		loginHandler: text(func(p *pass) *string { return &p.oauth.handler }),
		jwtRetriever: text(func(p *pass) *string { return &p.oauth.retriever }),
		oauthMethod:  text(func(p *pass) *string { return &p.oauth.method }),
		httpsCAFile:  file(httpsCAFile, trusted, roots),
		httpsCAPEM:   inline(roots),
	}
}

// oauthbearer enables SASL OAUTHBEARER. options are those of the JAAS configuration.
func (p *pass) oauthbearer(options map[string]string) []error {
	o, errs := p.oauth, p.checkClasses()
	refuse := func(err error, properties ...string) {
		errs = append(errs, fmt.Errorf("kafka: %s: %w", p.given(properties...), err))
	}
	for _, field := range []struct {
		value  *string
		option string
	}{{&o.id, "clientId"}, {&o.secret, "clientSecret"}, {&o.scope, "scope"}} {
		if *field.value == "" {
			*field.value = options[field.option]
		}
	}
	sent, err := extensionsOf(o.extensions, options)
	if err != nil {
		refuse(err, extensions, jaasConfig)
	}
	source, err := p.tokenSource(o)
	if err != nil {
		return append(errs, err)
	}
	for _, unused := range []string{saslUsername, saslPassword} {
		if _, ok := p.properties[unused]; ok {
			p.Ignored = append(p.Ignored, unused)
		}
	}
	sasl := &p.cfg.Net.SASL
	sasl.Enable, sasl.Mechanism, sasl.Version = true, sarama.SASLTypeOAuth, sarama.SASLHandshakeV1
	sasl.TokenProvider = &tokenProvider{source: source, extensions: sent}
	return errs
}

// tokenSource returns the source that the URL of the token endpoint names. A token file is read once, so that a wrong name
// is an error at the start; an endpoint is not contacted.
func (p *pass) tokenSource(o oauthProperties) (TokenSource, error) {
	refuse := func(property string, err error) (TokenSource, error) {
		return nil, fmt.Errorf("kafka: %s: %w: %w", p.name(property), ErrValue, err)
	}
	o.endpoint = strings.TrimSpace(o.endpoint)
	if o.endpoint == "" {
		return refuse(tokenEndpoint, errors.New("missing, want the https URL of the token endpoint, or file:///path of a token file"))
	}
	if u, err := url.Parse(o.endpoint); err == nil && strings.EqualFold(u.Scheme, "file") {
		if u.Host != "" && u.Host != "localhost" || u.Path == "" {
			return refuse(tokenEndpoint, errors.New("want file:///path with an absolute path"))
		}
		source, err := NewTokenFile(u.Path, nil)
		if err != nil {
			return refuse(tokenEndpoint, fmt.Errorf("the token file: %w", err))
		}
		return source, nil
	}
	if o.id == "" || o.secret == "" {
		return nil, fmt.Errorf("kafka: %s, %s: %w: missing; set them, or clientId and clientSecret in %s",
			p.name(clientID), p.name(clientSecret), ErrValue, p.name(jaasConfig))
	}
	config := TokenEndpointConfig{URL: o.endpoint, ID: o.id, Secret: o.secret, Scope: o.scope, Encode: o.encode}
	if p.tls.tokenRoots != nil {
		config.Roots = x509.NewCertPool()
		if !config.Roots.AppendCertsFromPEM(p.tls.tokenRoots) {
			return nil, fmt.Errorf("kafka: %s: %w: no PEM certificate", p.given(httpsCAFile, httpsCAPEM), ErrValue)
		}
	}
	source, err := NewTokenEndpoint(config)
	if err != nil {
		return refuse(tokenEndpoint, err)
	}
	return source, nil
}

// checkClasses refuses Java classes other than those that do what this package does.
func (p *pass) checkClasses() (errs []error) {
	const library = "org.apache.kafka.common.security.oauthbearer."
	for _, c := range []struct {
		property, value string
		accepted        []string
	}{
		{loginHandler, p.oauth.handler, []string{
			library + "OAuthBearerLoginCallbackHandler", library + "secured.OAuthBearerLoginCallbackHandler",
		}},
		{jwtRetriever, p.oauth.retriever, []string{
			library + "DefaultJwtRetriever", library + "ClientCredentialsJwtRetriever", library + "FileJwtRetriever",
		}},
		{oauthMethod, p.oauth.method, []string{"oidc"}},
	} {
		if strings.TrimSpace(c.value) == "" {
			continue
		}
		if err := only("tokens come from a token endpoint by client credentials, or from a file", c.accepted...)(p, c.value); err != nil {
			errs = append(errs, fmt.Errorf("kafka: %s: %w", p.name(c.property), err))
		}
	}
	return errs
}

var (
	extensionKey   = regexp.MustCompile(`^[A-Za-z]+$`)
	extensionValue = regexp.MustCompile(`^[\x21-\x7e \t\r\n]+$`)
)

// extensionsOf returns the SASL extensions: those of librdkafka's list, such as logicalCluster=lkc-1,identityPoolId=pool-2,
// and the JAAS options that begin with extension_.
func extensionsOf(list string, options map[string]string) (map[string]string, error) {
	all := map[string]string{}
	for option, value := range options {
		if key, ok := strings.CutPrefix(option, "extension_"); ok {
			all[key] = value
		}
	}
	for entry := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(entry) == "" {
			continue
		}
		key, value, _ := strings.Cut(entry, "=")
		all[strings.TrimSpace(key)] = strings.TrimSpace(value)
	}
	for key, value := range all {
		if !extensionKey.MatchString(key) || key == sarama.SASLExtKeyAuth || !extensionValue.MatchString(value) {
			return nil, fmt.Errorf("%w: want name=value,... with names of letters, not auth, and printable values", ErrValue)
		}
	}
	return all, nil
}

// tokenProvider implements sarama.AccessTokenProvider. Copies of a configuration share it, and so its cached token.
type tokenProvider struct {
	source     TokenSource
	extensions map[string]string
}

// Token implements sarama.AccessTokenProvider.
func (t *tokenProvider) Token() (*sarama.AccessToken, error) {
	token, err := t.source.Token(context.Background())
	if err != nil {
		return nil, err
	}
	return &sarama.AccessToken{Token: token, Extensions: t.extensions}, nil
}
