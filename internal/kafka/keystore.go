package kafka

import (
	"bytes"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"slices"
)

// The formats of certificates and keys. Only PEM is read.
const (
	formatPEM    = "PEM"
	formatJKS    = "JKS"
	formatJCEKS  = "JCEKS"
	formatPKCS12 = "PKCS12"
	formatDER    = "DER"
)

// formatOf returns the format of a file's content by its first bytes, or "" if it is none of the known ones.
func formatOf(raw []byte) string {
	var sequence, version asn1.RawValue
	switch {
	case bytes.HasPrefix(raw, []byte{0xFE, 0xED, 0xFE, 0xED}):
		return formatJKS
	case bytes.HasPrefix(raw, []byte{0xCE, 0xCE, 0xCE, 0xCE}):
		return formatJCEKS
	}
	if block, _ := pem.Decode(raw); block != nil {
		return formatPEM
	}
	if _, err := asn1.Unmarshal(raw, &sequence); err != nil || sequence.Tag != asn1.TagSequence {
		return ""
	}
	// A PKCS #12 store begins with its version, 3. A certificate begins with a sequence, and a key with version 0 or 1.
	if _, err := asn1.Unmarshal(sequence.Bytes, &version); err == nil && version.Tag == asn1.TagInteger &&
		bytes.Equal(version.Bytes, []byte{3}) {
		return formatPKCS12
	}
	return formatDER
}

// content is what a file of certificates or keys is used for.
type content string

const (
	trusted content = "truststore"  // certificates of authorities
	chain   content = "certificate" // the client's certificate
	private content = "key"         // the client's key
	both    content = "keystore"    // the client's certificate and key
)

// storeFile is a file that a property names. Its format is checked when all properties have been read.
type storeFile struct {
	property string
	content  content
	raw      []byte
}

// checkFiles returns an error, with the commands that convert it, for each file that is not PEM or is declared as another
// format.
func (p *pass) checkFiles() (errs []error) {
	files := p.tls.files
	for content, property := range map[content]string{trusted: truststoreLocation, both: keystoreLocation} {
		if p.tls.declared[content] != "" && !slices.ContainsFunc(files, func(f storeFile) bool { return f.property == property }) {
			files = append(files, storeFile{property: property, content: content})
		}
	}
	for _, f := range files {
		if err := p.checkFile(f); err != nil {
			errs = append(errs, fmt.Errorf("kafka: %s: %w", p.name(f.property), err))
		}
	}
	return errs
}

func (p *pass) checkFile(f storeFile) error {
	found, declared := formatOf(f.raw), ""
	if f.property == truststoreLocation || f.property == keystoreLocation {
		declared = p.tls.declared[f.content]
	}
	kind := p.name("ssl." + string(f.content) + ".type")
	switch {
	case found == formatPEM && declared != "" && declared != formatPEM:
		return fmt.Errorf("%w: the file is PEM; set %s to PEM", ErrValue, kind)
	case found == "":
		found = declared
	}
	if found == "" || found == formatPEM {
		return nil // a file without a PEM block has its own error
	}
	then := ""
	if declared != "" && declared != formatPEM {
		then = ", and set " + kind + " to PEM"
	}
	return fmt.Errorf("%w: the file is %s and only PEM can be read; convert it with: %s; then name the PEM file%s",
		ErrRefused, found, p.conversion(f, found), then)
}

// conversion returns the commands that convert a file to PEM. They ask for passwords.
func (p *pass) conversion(f storeFile, format string) string {
	from := p.argument(f, format)
	switch {
	case format == formatDER && f.content != private:
		return "openssl x509 -inform DER -in " + from + " -out " + string(f.content) + ".pem"
	case format == formatDER:
		return "openssl pkey -inform DER -in " + from + " -out key.pem"
	case f.content == trusted:
		return "keytool -list -rfc -keystore " + from + " > truststore.pem"
	case format == formatPKCS12:
		return "openssl pkcs12 -in " + from + " -nodes -out keystore.pem"
	default:
		return "keytool -importkeystore -srckeystore " + from + " -srcstoretype " + format +
			" -destkeystore keystore.p12 -deststoretype PKCS12 && openssl pkcs12 -in keystore.p12 -nodes -out keystore.pem"
	}
}

// argument returns the file of a property as an argument of a command: the environment variable that set the property, or
// else a placeholder. It never returns the value.
func (p *pass) argument(f storeFile, format string) string {
	if name := p.name(f.property); name != f.property {
		return `"$` + name + `"`
	}
	extensions := map[string]string{formatJKS: ".jks", formatJCEKS: ".jks", formatPKCS12: ".p12", formatDER: ".der"}
	return string(f.content) + extensions[format]
}
