package webhook

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/placet-dev/placet/delivery"
)

func TestCheckAccepts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		url string
		o   Options
	}{
		{"https://hooks.example.com/v1/placet?team=a%20b", Options{}},
		{"HTTPS://Hooks.Example.COM", Options{}},
		{"https://xn--bcher-kva.example:8443/", Options{}},
		{"https://under_score.example/@x", Options{}},
		{"https://8.8.8.8/", Options{}},
		{"https://[2606:4700::1111]:65535/", Options{}},
		{"https://[64:ff9b::8.8.8.8]/", Options{}},
		{"https://receiver/", Options{}},
		{"https://127.0.0.1.example.com/", Options{}}, // a name; what it resolves to is judged later
		{"http://localhost:9000/", Options{}},
		{"http://LOCALHOST/", Options{}},
		{"http://127.0.0.1/", Options{}},
		{"http://127.255.0.9:1/", Options{}},
		{"http://[::1]:80/", Options{}},
		{"http://[0:0:0:0:0:0:0:1]/", Options{}},
		{"http://hooks.example.com/", Options{AllowHTTP: true}},
		{"https://10.0.0.7/", Options{AllowPrivate: true}},
		{"https://[fd12::7]/", Options{AllowPrivate: true}},
		{"https://a.example/" + strings.Repeat("x", delivery.MaxURL-len("https://a.example/")), Options{}},
	} {
		if err := open(t, tt.o).Check(message(tt.url).Target); err != nil {
			t.Errorf("%s: %v", tt.url, err)
		}
	}
}

// Case 140: every spelling that some reader takes for an address, and the rest.
func TestCase140CheckRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ url, says string }{
		{"", "needs a URL"},
		{"hooks.example.com", "https://"},
		{"//hooks.example.com/", "https://"},
		{"/v1/hook", "https://"},
		{"https:/hooks.example.com", "no host"},
		{"https:hooks.example.com", "cannot be read"},
		{"https:///path", "no host"},
		{"https://:443/", "neither a name nor an address"},
		{"ftp://hooks.example.com/", "https://"},
		{"file:///etc/passwd", "https://"},
		{"unix:///var/run/docker.sock", "https://"},
		{"http://hooks.example.com/", "https://"},
		{"http://8.8.8.8/", "https://"},
		{"http://localhost.example.com/", "https://"},
		{"http://foo.localhost/", "https://"},
		{"https://a.example/" + strings.Repeat("x", delivery.MaxURL), "2048 are allowed"},
		{"https://hooks.example.com/a b", "space"},
		{"https://hooks.example.com/\r\nX: y", "space"},
		{"https://hooks.example.com\\@10.0.0.1/", "backslash"},
		{"https://bücher.example/", "outside ASCII"},
		{"https://１２７.0.0.1/", "outside ASCII"},
		{"https://①②⑦.⓪.⓪.①/", "outside ASCII"},
		{"https://127。0。0。1/", "outside ASCII"},
		{"https://hooks.example.com/#part", "#"},
		{"https://hooks.example.com/#", "#"},
		{"https://me:hunter2@hooks.example.com/", "no user and password"},
		{"https://hunter2@hooks.example.com/", "no user and password"},
		{"https://@hooks.example.com/", "no user and password"},
		{"https://%31%32%37.0.0.1/", "no % in its host"},
		{"https://hooks.example%2ecom/", "no % in its host"},
		{"https://[fe80::1%25eth0]/", "no % in its host"},
		{"https://[::1%25lo]/", "no % in its host"},
		{"https://hooks.example.com:0/", "port"},
		{"https://hooks.example.com:65536/", "port"},
		{"https://hooks.example.com:080/", "port"},
		{"https://hooks.example.com:/", "port"},
		{"https://hooks.example.com:+80/", ""},
		{"https://hooks.example.com:80:80/", ""},
		{"https://::1/", ""},
		{"https://[::1]80/", ""},
		{"https://[::1/", ""},
		{"https://[]/", ""},
		{"https://[hooks.example.com]/", ""},
		{"https://[127.0.0.1]/", ""},
		{"https://[v1.fe80::a]/", ""},
		{"https://2130706433/", "unusual spelling"},
		{"https://017700000001/", "unusual spelling"},
		{"https://0x7f000001/", "unusual spelling"},
		{"https://0X7F000001/", "unusual spelling"},
		{"https://0x7f.1/", "unusual spelling"},
		{"https://0x7f.0x0.0x0.0x1/", "unusual spelling"},
		{"https://127.0.0.0x1/", "unusual spelling"},
		{"https://127.0.0.0x/", "unusual spelling"},
		{"https://0177.0.0.1/", "unusual spelling"},
		{"https://127.000.000.001/", "unusual spelling"},
		{"https://127.1/", "unusual spelling"},
		{"https://127.0.1/", "unusual spelling"},
		{"https://0/", "unusual spelling"},
		{"https://1.2.3.4.5/", "unusual spelling"},
		{"https://256.256.256.256/", "unusual spelling"},
		{"https://8.8.8.8./", "neither a name nor an address"},
		{"https://127.0.0.1./", "neither a name nor an address"},
		{"https://localhost./", "neither a name nor an address"},
		{"https://hooks.example.com./", "neither a name nor an address"},
		{"https://127..1/", "neither a name nor an address"},
		{"https://.example.com/", "neither a name nor an address"},
		{"https://-a.example.com/", "neither a name nor an address"},
		{"https://a!.example.com/", "neither a name nor an address"},
		{"https://" + strings.Repeat("a", 64) + ".example/", "neither a name nor an address"},
		{"https://" + strings.Repeat("a.", 127) + "example/", "253 bytes"},
		{"https://[::ffff:127.0.0.1]/", "unusual spelling"},
		{"https://[::ffff:7f00:1]/", "unusual spelling"},
		{"https://[0:0:0:0:0:ffff:8.8.8.8]/", "unusual spelling"},
		{"https://[::127.0.0.1]/", "reserved"},
		{"https://[::8.8.8.8]/", "reserved"},
		{"https://[64:ff9b::127.0.0.1]/", "leads to a loopback"},
		{"https://[64:ff9b::10.0.0.1]/", "leads to a private"},
		{"https://[64:ff9b::a9fe:a9fe]/", "metadata"},
		{"https://[2002:7f00:1::]/", "leads to a loopback"},
		{"https://[2002:a00:1::1]/", "leads to a private"},
		{"https://[2001:0:808:808::80ff:fffe]/", "leads to a loopback"}, // Teredo: the client, turned
		{"https://[2001:0:a00:1::f7f7:f7f7]/", "leads to a private"},    // Teredo: the server
		{"https://0.0.0.0/", "unspecified"},
		{"https://[::]/", "unspecified"},
		{"https://10.0.0.7/", "private"},
		{"https://172.31.255.255/", "private"},
		{"https://192.168.0.1/", "private"},
		{"https://100.64.0.1/", "private"},
		{"https://[fd12::7]/", "private"},
		{"https://169.254.169.254/latest/meta-data/", "metadata"},
		{"https://[fd00:ec2::254]/", "metadata"},
		{"https://100.100.100.200/", "metadata"},
		{"https://169.254.1.1/", "link-local"},
		{"https://[fe80::1]/", "link-local"},
		{"https://224.0.0.1/", "multicast"},
		{"https://[ff02::1]/", "multicast"},
		{"https://255.255.255.255/", "broadcast"},
		{"https://240.0.0.1/", "reserved"},
		{"https://[4000::1]/", "reserved"},
	} {
		err := open(t, Options{}).Check(message(tt.url).Target)
		if !errors.Is(err, delivery.ErrUsage) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v; want one that says %q", tt.url, err, tt.says)
			continue
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error shows the password: %v", tt.url, err)
		}
	}
}

func TestCheckHeaders(t *testing.T) {
	t.Parallel()
	c := open(t, Options{})
	check := func(h map[string]string) error {
		target := message("https://hooks.example.com/").Target
		target.Headers = h
		return c.Check(target)
	}
	many := map[string]string{}
	for i := range delivery.MaxHeaders {
		many[fmt.Sprint("X-", i)] = "v"
	}
	for _, h := range []map[string]string{nil, many, {"Authorization": "Bearer a b\tc ü"}, {"X-Empty": ""}, {"user-agent": "mine"}} {
		if err := check(h); err != nil {
			t.Errorf("%v: %v", h, err)
		}
	}
	many["X-One-More"] = "v"
	bad := []map[string]string{many, {"x-a": "1", "X-A": "2"}, {"": "v"}, {"a b": "v"}, {"a:": "v"}, {"ä": "v"}, {"a\n": "v"}}
	for _, value := range []string{"hunter2\r\nX: y", "hunter2\x00", "hunter2\x7f", "hunter2\xff"} {
		bad = append(bad, map[string]string{"X-A": value})
	}
	for _, name := range append([]string{"content-type", "CONTENT-LENGTH", "Content-Encoding", "webhook-id", "Webhook-Signature", "webhook-x"}, ownHeaders...) {
		bad = append(bad, map[string]string{name: "v"}, map[string]string{strings.ToUpper(name): "v"})
	}
	for _, h := range bad {
		err := check(h)
		if !errors.Is(err, delivery.ErrUsage) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v: %v", h, err)
		}
	}
}

func TestCheckSecret(t *testing.T) {
	t.Parallel()
	c := open(t, Options{})
	for _, n := range []int{1, delivery.MinSecret - 1, delivery.MaxSecret + 1} {
		target := message("https://hooks.example.com/").Target
		target.Secret = make([]byte, n)
		if err := c.Check(target); !errors.Is(err, delivery.ErrUsage) {
			t.Errorf("a secret of %d bytes: %v", n, err)
		}
	}
}
