package main

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/auth/jwt"
)

// access is who may use the doors, and how their connections are protected.
type access struct {
	authenticate auth.Authenticate // nil: everyone may
	kinds        []string          // the kinds of credentials that are accepted
	tls          *tls.Config       // nil: plain HTTP
	origins      []string          // ALLOWED_ORIGINS: pages whose scripts may use the doors
	proxies      []netip.Prefix    // TRUSTED_PROXIES: those that name the clients' addresses
}

// readAccess reads the variables of authentication and TLS. Of several kinds of credentials, the first that a request has
// decides: API key, token, client certificate.
func readAccess(logger *zap.Logger) (access, error) {
	var a access
	var errs []error
	check := func(err error) { errs = append(errs, err) }
	sessions, err := auth.ParseSessions(list("AUTH_SESSIONS", "{user}:*")...)
	if err != nil {
		check(fmt.Errorf("AUTH_SESSIONS: %w", err))
	}
	rights, err := auth.ParseRights(list("AUTH_RIGHTS", "read,write,answer")...)
	if err != nil {
		check(fmt.Errorf("AUTH_RIGHTS: %w", err))
	}
	var functions []auth.Authenticate
	accept := func(kind string, f auth.Authenticate) {
		a.kinds, functions = append(a.kinds, kind), append(functions, f)
	}
	if path := variable("AUTH_KEYS_FILE"); path != "" {
		keys, err := auth.OpenAPIKeys(path, auth.APIKeyConfig{Logger: logger})
		if err != nil {
			check(named("AUTH_KEYS_FILE", err))
		} else {
			accept("API keys", keys.Authenticate)
		}
	}
	tokens, err := readTokens(sessions, rights, logger)
	check(err)
	if tokens != nil {
		accept("JWT", tokens.Authenticate)
	}
	a.tls, err = readTLS(logger)
	check(err)
	if variable("AUTH_CLIENT_CA_FILE") != "" {
		name := auth.CertificateName(cmp.Or(variable("AUTH_CLIENT_NAME"), string(auth.NameCommon)))
		certificates, err := auth.NewCertificates(auth.CertificateConfig{Name: name, Sessions: sessions, Rights: rights})
		if err != nil {
			check(fmt.Errorf("AUTH_CLIENT_NAME: %w", err))
		} else {
			accept("client certificates", certificates.Authenticate)
		}
	}
	if len(functions) > 0 {
		a.authenticate = auth.First(functions...)
	}
	if variable("ALLOWED_ORIGINS") != "" {
		a.origins = list("ALLOWED_ORIGINS", "")
		if slices.ContainsFunc(a.origins, func(o string) bool { return !isOrigin(o) }) {
			check(errors.New("ALLOWED_ORIGINS: want origins such as https://chat.example, separated by commas"))
		}
	}
	if variable("TRUSTED_PROXIES") != "" {
		for _, network := range list("TRUSTED_PROXIES", "") {
			prefix, err := netip.ParsePrefix(network)
			if err != nil {
				check(errors.New("TRUSTED_PROXIES: want networks such as 10.0.0.0/8, separated by commas"))
				break
			}
			a.proxies = append(a.proxies, prefix)
		}
	}
	return a, errors.Join(errs...)
}

// isOrigin reports whether a text is what browsers send as the origin of a page. Others would never match, or match as a pattern.
func isOrigin(text string) bool {
	at, err := url.Parse(text)
	return err == nil && (at.Scheme == "https" || at.Scheme == "http") && at.Hostname() != "" && text == at.Scheme+"://"+at.Host &&
		strings.ToLower(text) == text && !strings.ContainsAny(text, "*?[")
}

// readTokens returns the authentication by JWT; nil without AUTH_JWKS.
func readTokens(sessions auth.Sessions, rights auth.Rights, logger *zap.Logger) (*jwt.Tokens, error) {
	jwks, issuer, audience := variable("AUTH_JWKS"), variable("AUTH_JWT_ISSUER"), variable("AUTH_JWT_AUDIENCE")
	if jwks == "" {
		for _, name := range []string{
			"AUTH_JWT_ISSUER", "AUTH_JWT_AUDIENCE", "AUTH_JWT_ALGORITHMS", "AUTH_JWT_SESSIONS_CLAIM", "AUTH_JWT_RIGHTS_CLAIM",
		} {
			if variable(name) != "" {
				return nil, fmt.Errorf("%s is set and AUTH_JWKS is not", name)
			}
		}
		return nil, nil
	}
	if issuer == "" || audience == "" {
		return nil, errors.New("AUTH_JWKS requires AUTH_JWT_ISSUER and AUTH_JWT_AUDIENCE")
	}
	config := jwt.Config{
		Sessions: sessions, SessionsClaim: variable("AUTH_JWT_SESSIONS_CLAIM"), Rights: rights, RightsClaim: variable("AUTH_JWT_RIGHTS_CLAIM"),
		Logger: logger,
	}
	if variable("AUTH_JWT_ALGORITHMS") != "" {
		config.Algorithms = list("AUTH_JWT_ALGORITHMS", "")
	}
	tokens, err := jwt.New(jwks, issuer, audience, config)
	switch {
	case errors.Is(err, jwt.ErrConfig) && strings.Contains(err.Error(), "Algorithms"):
		return nil, named("AUTH_JWT_ALGORITHMS", err)
	case err != nil:
		return nil, named("AUTH_JWKS", err)
	}
	return tokens, nil
}

// readTLS returns the configuration of the listeners of PORT and WS_PORT; nil for plain HTTP.
func readTLS(logger *zap.Logger) (*tls.Config, error) {
	files := auth.TLSFiles{
		Certificate: variable("TLS_CERTIFICATE_FILE"), Key: variable("TLS_KEY_FILE"),
		// Tools answer at the same address with callback tokens, so the doors decide who needs a certificate.
		ClientAuthorities: variable("AUTH_CLIENT_CA_FILE"), ClientsOptional: true,
	}
	switch {
	case files.Certificate == "" && files.Key == "" && files.ClientAuthorities == "":
		return nil, nil
	case files.Certificate == "" || files.Key == "":
		return nil, errors.New("TLS_CERTIFICATE_FILE and TLS_KEY_FILE: want both, and AUTH_CLIENT_CA_FILE requires them")
	}
	for _, name := range []string{"TLS_CERTIFICATE_FILE", "TLS_KEY_FILE", "AUTH_CLIENT_CA_FILE"} {
		if path := variable(name); path != "" {
			if _, err := os.Stat(path); err != nil {
				return nil, named(name, err)
			}
		}
	}
	config, err := auth.ServerTLS(files, logger)
	if err != nil {
		return nil, named("TLS_CERTIFICATE_FILE, TLS_KEY_FILE and AUTH_CLIENT_CA_FILE", err)
	}
	return config, nil
}

// named returns an error with the names of variables and without a path: a secret may have been pasted instead of one.
func named(variables string, err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return fmt.Errorf("%s: the file cannot be read: %w", variables, path.Err)
	}
	return fmt.Errorf("%s: %w", variables, err)
}

// list returns the values of a variable that are separated by commas.
func list(name, unset string) (values []string) {
	for value := range strings.SplitSeq(cmp.Or(variable(name), unset), ",") {
		values = append(values, strings.TrimSpace(value))
	}
	return values
}

// warn logs each door that anyone can use who reaches its address, and each that receives credentials in plain text.
func (s *settings) warn(logger *zap.Logger) {
	for _, d := range []struct{ door, variable, addr string }{
		{"chat", "PORT", s.doors}, {"websocket", "WS_PORT", s.websocket},
	} {
		fields := []zap.Field{zap.String("door", d.door), zap.String("variable", d.variable), zap.String("addr", d.addr)}
		switch {
		case d.addr == "":
		case s.authenticate == nil:
			if s.origins != nil {
				fields = append(fields, zap.Strings("also pages of", s.origins))
			}
			logger.Warn("a door is open: anyone who reaches its address can use every session; set AUTH_KEYS_FILE, AUTH_JWKS "+
				"or AUTH_CLIENT_CA_FILE", fields...)
		case s.tls == nil && !onLoopback(d.addr):
			logger.Warn("a door receives credentials in plain text: set TLS_CERTIFICATE_FILE, or put a proxy with TLS in front",
				fields...)
		}
	}
	if s.health != "" && !onLoopback(s.health) {
		logger.Warn("the health check is open: anyone who reaches its address can read the state and lag of the groups",
			zap.String("door", "health"), zap.String("variable", "HEALTH_ADDR"), zap.String("addr", s.health))
	}
}

func onLoopback(addr string) bool {
	host, _, _ := net.SplitHostPort(addr)
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
