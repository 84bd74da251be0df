package kafkatest

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/xml"
)

//go:embed pom.xml
var pom []byte

// Version is the version of Apache Kafka that this package starts, as pom.xml pins it.
func Version() string {
	var project struct {
		Version string `xml:"properties>kafka.version"`
	}
	// The file is embedded, and a test checks that it can be parsed.
	_ = xml.Unmarshal(pom, &project)
	return project.Version
}

// jarsKey identifies a set of jars by the version and a digest of pom.xml, which also pins other libraries, such as log4j.
func jarsKey() string {
	sum := sha256.Sum256(pom)
	return Version() + "-" + hex.EncodeToString(sum[:4])
}
