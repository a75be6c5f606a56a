package beanstalk_test

import (
	"strings"
	"testing"

	"github.com/postburner/postburner/beanstalk"
)

func TestCheckURL(t *testing.T) {
	t.Parallel()
	for text, wrong := range map[string]string{
		"beanstalk://localhost":             "",
		"beanstalk://localhost:11300":       "",
		"beanstalk://localhost:11300/":      "",
		"beanstalk://[::1]:11300":           "",
		"beanstalks://user:secret@host:443": "",
		"unix:///run/beanstalkd.sock":       "",
		"unix://relative.sock":              "",
		"":                                  "want beanstalk://HOST:PORT",
		"localhost:11300":                   "want beanstalk://HOST:PORT",
		"127.0.0.1:11300":                   "first path segment",
		"redis://localhost":                 "want beanstalk://HOST:PORT",
		"beanstalk://":                      "has no host",
		"beanstalk://:11300":                "has no host",
		"beanstalk://host/tube":             "nothing may follow the port",
		"beanstalk://host?tube=x":           "nothing may follow the port",
		"beanstalk://host:port":             "invalid port",
		"redis://user:secret@host":          "want beanstalk://HOST:PORT",
		"beanstalk://user:secret@host:port": "invalid port",
		"unix://":                           "has no path",
	} {
		err := beanstalk.CheckURL(text)
		switch {
		case wrong == "" && err != nil:
			t.Errorf("%q: %v", text, err)
		case wrong != "" && (err == nil || !strings.Contains(err.Error(), wrong)):
			t.Errorf("%q: got %v, want %q in it", text, err, wrong)
		case err != nil && strings.Contains(err.Error(), "secret"):
			t.Errorf("%q: the error tells the password: %v", text, err)
		}
	}
	if got := beanstalk.MaskURL("beanstalks://user:secret@host"); got != "beanstalks://user:xxxxx@host" {
		t.Errorf("masked: %s", got)
	}
	if got := beanstalk.MaskURL("beanstalk://user:secret@host:port"); strings.Contains(got, "secret") {
		t.Errorf("masked: %s", got)
	}
}

func TestCheckTube(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]string{
		"default":                           "",
		"postburner.production.mailers":     "",
		"a-+/;.$_()Z9":                      "",
		strings.Repeat("a", 199):            "",
		strings.Repeat("a", 200):            "at most 199",
		"":                                  "must not be empty",
		"-lead":                             "starts with a hyphen",
		"two words":                         "byte 4 is none of",
		"line\r\n":                          "byte 5 is none of",
		"grün":                              "byte 3 is none of",
		"star*":                             "byte 5 is none of",
		strings.Repeat("grün ", 50) + "end": "at most 199",
	} {
		err := beanstalk.CheckTube(name)
		if wrong == "" && err != nil || wrong != "" && (err == nil || !strings.Contains(err.Error(), wrong)) {
			t.Errorf("%q: got %v, want %q in it", name, err, wrong)
		}
	}
}

func TestNewNamesEveryOptionThatIsWrong(t *testing.T) {
	t.Parallel()
	_, err := beanstalk.New(beanstalk.Options{URL: "redis://x", Tubes: []string{"good", "b a d", ""}})
	for _, text := range []string{"redis://x", "b a d", "must not be empty"} {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("New = %v, want it to name %q", err, text)
		}
	}
}
