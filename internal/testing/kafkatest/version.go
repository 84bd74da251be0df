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
	// The file is part of the binary; that it parses is a test.
	_ = xml.Unmarshal(pom, &project)
	return project.Version
}

// edition names a set of jars: the version, and the whole of pom.xml, so that another log4j is another set.
func edition() string {
	sum := sha256.Sum256(pom)
	return Version() + "-" + hex.EncodeToString(sum[:4])
}
