package door

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/topics"
)

// redacted replaces a secret in texts that are shown.
const redacted = "[REDACTED]"

// secrets are the patterns of texts that are not shown. The group "keep" in front of a secret stays.
var secrets = []*regexp.Regexp{
	// Keys in PEM, also one whose end was cut off.
	regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)`),
	// JSON Web Tokens.
	regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`),
	// Keys and tokens of services, by their prefixes.
	regexp.MustCompile(`\b(?:sk|pk|rk)[-_](?:[a-z]+[-_])*[A-Za-z0-9_-]{16,}`),
	regexp.MustCompile(`\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,})`),
	regexp.MustCompile(`\bxox[abeoprs]-[A-Za-z0-9-]{10,}`),
	regexp.MustCompile(`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`),
	regexp.MustCompile(`\bAIza[A-Za-z0-9_-]{30,}`),
	regexp.MustCompile(`\bnpm_[A-Za-z0-9]{30,}`),
	// Tokens of HTTP.
	regexp.MustCompile(`(?i)(?P<keep>\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/-]{16,}=*`),
	// Passwords in connection strings.
	regexp.MustCompile(`(?P<keep>\b[a-zA-Z][a-zA-Z0-9+.-]*://[^\s:/@"']*:)[^\s@/"']+@`),
	// Values of environment variables and members with telling names.
	regexp.MustCompile(`(?P<keep>\b[A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)[A-Z0-9_]*\s*=\s*["']?)[^\s"']{4,}`),
	regexp.MustCompile(`(?i)(?P<keep>["']?\b(?:api[_-]?key|access[_-]?token|auth[_-]?token|client[_-]?secret|password|passwd)["']?\s*[:=]\s*["']?)[^\s"',;}]{4,}`),
}

// secretHints are texts of which one is in every text that a pattern matches, in lower case.
var secretHints = []string{
	"private key", "eyj", "sk", "pk", "rk", "gh", "github_pat", "glpat", "xox", "akia", "asia", "aiza", "npm_", "bearer", "basic", "://", "key",
	"token", "secret", "passw", "credential",
}

// Redact replaces what looks like a secret in a text by "[REDACTED]": private keys, JSON Web Tokens, keys and tokens of known
// services, credentials of HTTP, passwords in URLs, and values of variables and members with names such as API_KEY or password.
// It finds what has such a form, so it may miss a secret, and may replace a text that is none.
func Redact(text string) string {
	if !mayHaveSecret(text) {
		return text
	}
	for _, s := range secrets {
		if !s.MatchString(text) {
			continue
		}
		replacement := redacted
		if s.SubexpIndex("keep") > 0 {
			replacement = "${keep}" + redacted
			if strings.HasSuffix(s.String(), "@") {
				replacement += "@"
			}
		}
		text = s.ReplaceAllString(text, replacement)
	}
	return text
}

func mayHaveSecret(text string) bool {
	lower := strings.ToLower(text)
	for _, hint := range secretHints {
		if strings.Contains(lower, hint) {
			return true
		}
	}
	return false
}

// redactJSON applies Redact to every text of a JSON value, but not to names. A value that cannot be read is withheld.
func redactJSON(value topics.Raw) topics.Raw {
	if len(value) == 0 || !mayHaveSecret(string(value)) && !bytes.Contains(value, []byte(`\u`)) {
		return value
	}
	dec := jsontext.NewDecoder(bytes.NewReader(value), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	var out bytes.Buffer
	enc := jsontext.NewEncoder(&out, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		token, err := dec.ReadToken()
		if err != nil {
			break
		}
		kind, length := dec.StackIndex(dec.StackDepth())
		if isName := kind == '{' && length%2 == 1; token.Kind() == '"' && !isName {
			token = jsontext.String(Redact(token.String()))
		}
		if enc.WriteToken(token) != nil {
			return topics.Raw("null")
		}
	}
	raw := bytes.TrimSpace(out.Bytes())
	if !jsontext.Value(raw).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
		return topics.Raw("null")
	}
	return raw
}
