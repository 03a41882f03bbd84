<?php

/** An authority, a certificate it signed for 127.0.0.1, and one that signed itself, made anew for a test. */

declare(strict_types=1);

namespace Millrace\Tests\Support;

final class Certificates
{
    public readonly string $authority;
    public readonly string $signed;
    public readonly string $selfSigned;

    public function __construct(private readonly string $folder)
    {
        $config = "$folder/openssl.cnf";
        file_put_contents($config, <<<'CNF'
            [req]
            distinguished_name = dn
            [dn]
            [authority]
            basicConstraints = critical,CA:TRUE
            keyUsage = critical,keyCertSign,cRLSign
            [server]
            basicConstraints = CA:FALSE
            subjectAltName = IP:127.0.0.1,DNS:localhost
            CNF);
        [$authority, $authorityKey] = $this->make('Test authority', 'authority', null, null);
        [$signed, $signedKey] = $this->make('127.0.0.1', 'server', $authority, $authorityKey);
        [$self, $selfKey] = $this->make('127.0.0.1', 'server', null, null);
        $this->authority = $this->write('authority.pem', [$authority], null);
        $this->signed = $this->write('signed.pem', [$signed], $signedKey);
        $this->selfSigned = $this->write('self.pem', [$self], $selfKey);
    }

    /** @return array{\OpenSSLCertificate, \OpenSSLAsymmetricKey} */
    private function make(string $name, string $section, ?\OpenSSLCertificate $by, ?\OpenSSLAsymmetricKey $byKey): array
    {
        $settings = ['config' => "{$this->folder}/openssl.cnf", 'digest_alg' => 'sha256', 'x509_extensions' => $section];
        $key = openssl_pkey_new(['private_key_type' => OPENSSL_KEYTYPE_EC, 'curve_name' => 'prime256v1', 'private_key_bits' => 2048] + $settings);
        $request = openssl_csr_new(['commonName' => $name], $key, $settings);
        $certificate = openssl_csr_sign($request, $by, $byKey ?? $key, 2, $settings, random_int(1, 1_000_000));
        if ($key === false || $certificate === false) {
            throw new \RuntimeException('no certificate can be made: ' . openssl_error_string());
        }
        return [$certificate, $key];
    }

    /** @param list<\OpenSSLCertificate> $certificates */
    private function write(string $name, array $certificates, ?\OpenSSLAsymmetricKey $key): string
    {
        $text = '';
        foreach ($certificates as $certificate) {
            openssl_x509_export($certificate, $pem);
            $text .= $pem;
        }
        if ($key !== null) {
            openssl_pkey_export($key, $pem, null, ['config' => "{$this->folder}/openssl.cnf"]);
            $text .= $pem;
        }
        file_put_contents("{$this->folder}/$name", $text);
        return "{$this->folder}/$name";
    }
}
