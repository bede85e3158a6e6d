//! How a broker is reached: who the service is there, and whose certificate it trusts.
//!
//! This stands in the operator's settings and nowhere else, by the address of the broker: whoever may make sources cannot see
//! it, and cannot send a password to a broker of their own.

use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;
use zeroize::Zeroizing;

use crate::broker::error::BrokerError;
use crate::config::{ConfigError, is_address};

/// The login and the trust that the broker at an address wants.
///
/// ```toml
/// [[broker]]
/// address = "127.0.0.1:6380"
/// user = "dpsw"
/// password = { file = "redis.password" }
/// tls = { ca = "ca.pem" }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct BrokerAccess {
    /// The address, as sources have it.
    pub address: String,
    /// Who the service is there. Without one, the password is that of Redis itself or the token of NATS.
    #[serde(default)]
    pub user: Option<String>,
    /// Where its password stands.
    #[serde(default)]
    pub password: Option<Secret>,
    /// How Kafka is told the password.
    #[serde(default)]
    pub sasl: Sasl,
    /// Encrypts, if the broker shows a certificate that is trusted.
    #[serde(default)]
    pub tls: Option<Trust>,
}

/// The place of a secret, which is read anew for each connection.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Secret {
    /// A file; white space at its ends is left out.
    File(PathBuf),
    /// A variable of the environment.
    Variable(String),
}

/// A way to tell Kafka a password.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sasl {
    /// As it is.
    #[default]
    Plain,
    /// By a proof with SHA-256.
    #[serde(rename = "scram-sha-256")]
    ScramSha256,
    /// By a proof with SHA-512.
    #[serde(rename = "scram-sha-512")]
    ScramSha512,
}

/// Whose certificates are trusted.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// Those that the system trusts.
    System,
    /// Those of an authority, from a PEM file, and no others.
    Ca(PathBuf),
}

/// A password that is in no text and is wiped.
pub(crate) struct Password(Zeroizing<String>);

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}

impl Password {
    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

impl BrokerAccess {
    /// # Errors
    /// A field cannot be meant.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let refuse =
            |text: &str| Err(ConfigError::Contradiction(format!("[[broker]] {:?} {text}", self.address)));
        if !self.address.split(',').all(is_address) {
            return refuse("needs the address as its sources have it, such as \"127.0.0.1:9092\"");
        }
        if self.user.is_some() && self.password.is_none() {
            return refuse("has a user without a password; name one with password = { file = \"PATH\" }");
        }
        if self.sasl != Sasl::Plain && self.user.is_none() {
            return refuse("says how a password is told, and has no user; name user and password");
        }
        if self.password.is_none() && self.tls.is_none() {
            return refuse("says nothing about its broker; give it a password or tls, or leave it out");
        }
        Ok(())
    }

    pub(crate) fn paths(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let password = self.password.as_mut().and_then(|secret| match secret {
            Secret::File(path) => Some(path),
            Secret::Variable(_) => None,
        });
        let authority = self.tls.as_mut().and_then(|trust| match trust {
            Trust::Ca(path) => Some(path),
            Trust::System => None,
        });
        password.into_iter().chain(authority)
    }

    pub(crate) fn password(&self) -> Result<Option<Password>, BrokerError> {
        self.password.as_ref().map(Secret::read).transpose()
    }

    /// The certificates of the authority, as PEM; none where the system's are trusted.
    #[cfg(feature = "redis")]
    pub(crate) fn authority(&self) -> Result<Option<Vec<u8>>, BrokerError> {
        let Some(Trust::Ca(path)) = &self.tls else { return Ok(None) };
        let pem = std::fs::read(path);
        pem.map(Some)
            .map_err(|error| BrokerError::Secret(format!("{} cannot be read: {error}", path.display())))
    }
}

impl Secret {
    fn read(&self) -> Result<Password, BrokerError> {
        let (place, text) = match self {
            Self::File(path) => {
                (path.display().to_string(), std::fs::read_to_string(path).map_err(|error| error.to_string()))
            }
            // The error of the variable would show what it holds.
            Self::Variable(name) => (
                format!("the variable {name}"),
                std::env::var(name).map_err(|_| "it is not set, or no text".to_owned()),
            ),
        };
        let text = Zeroizing::new(
            text.map_err(|reason| BrokerError::Secret(format!("{place} cannot be read: {reason}")))?,
        );
        match text.trim() {
            "" => Err(BrokerError::Secret(format!("{place} is empty"))),
            text => Ok(Password(Zeroizing::new(text.to_owned()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(more: &str) -> BrokerAccess {
        toml::from_str(&format!("address = 'localhost:1'\n{more}")).expect(more)
    }

    #[test]
    fn what_cannot_be_meant_is_refused_in_words() {
        for (more, wanted) in [
            ("", "says nothing about its broker"),
            ("user = 'u'", "has a user without a password"),
            ("sasl = 'scram-sha-256'\npassword = { file = 'p' }", "has no user"),
        ] {
            let refused = access(more).check().expect_err(more).to_string();
            assert!(refused.contains(wanted) && refused.contains("\"localhost:1\""), "{refused}");
        }
        for address in ["", "localhost", "redis://localhost:1", "u:p@localhost:1"] {
            let text = format!("address = '{address}'\ntls = 'system'");
            let refused = toml::from_str::<BrokerAccess>(&text).expect(address).check().expect_err(address);
            assert!(refused.to_string().contains("needs the address as its sources have it"), "{refused}");
        }
        for more in [
            "tls = 'system'",
            "password = { variable = 'V' }",
            "tls = { ca = 'c' }\nuser = 'u'\npassword = { file = 'p' }",
        ] {
            access(more).check().expect(more);
        }
        for more in ["password = 'secret'", "tls = true", "sasl = 'gssapi'", "secret = 'x'"] {
            toml::from_str::<BrokerAccess>(&format!("address = 'localhost:1'\n{more}")).expect_err(more);
        }
    }

    #[test]
    fn a_password_is_read_from_its_place_and_shown_nowhere() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("password");
        std::fs::write(&path, " s3cret\n").expect("a file");
        let read = Secret::File(path.clone()).read().expect("a password");
        assert_eq!((read.text(), format!("{read:?}").as_str()), ("s3cret", "Password"));
        std::fs::write(&path, "\n").expect("a file");
        let path_of_programs = std::env::var("PATH").expect("there are programs");
        let read = Secret::Variable("PATH".to_owned()).read().expect("a text");
        assert_eq!(read.text(), path_of_programs);
        for (secret, wanted) in [
            (Secret::File(path), "is empty"),
            (Secret::File(folder.path().join("none")), "cannot be read"),
            (
                Secret::Variable("DPSW_NO_SUCH_VARIABLE".to_owned()),
                "the variable DPSW_NO_SUCH_VARIABLE cannot be read",
            ),
        ] {
            let refused = secret.read().expect_err(wanted).to_string();
            assert!(refused.contains(wanted), "{refused}");
        }
    }
}
